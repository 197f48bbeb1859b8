#include "results/render_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/units.h"

namespace cudabk {
namespace {

std::vector<std::string> words_of(const std::string& key) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < key.size();) {
    const size_t end = std::min(key.find(' ', begin), key.size());
    words.push_back(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int severity(const CaseComparison& row) {
  if (row.reason == Reason::kWrongOutput) {
    return 0;
  }
  switch (row.verdict) {
    case Verdict::kRegressed:
      return 1;
    case Verdict::kInconclusive:
      return 2;
    case Verdict::kMissing:
      return row.reason == Reason::kNeitherSide ? 5 : 3;
    default:
      return 4;
  }
}

}  // namespace

bool needs_attention(const CaseComparison& row) { return severity(row) < 4; }
bool is_failure(const CaseComparison& row) { return severity(row) < 2; }

std::vector<const CaseComparison*> worst_first(const Comparison& comparison) {
  std::vector<const CaseComparison*> rows;
  for (const CaseComparison& row : comparison.cases) {
    rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CaseComparison* a, const CaseComparison* b) {
    return std::tuple(severity(*a), -a->change.value_or(0)) < std::tuple(severity(*b), -b->change.value_or(0));
  });
  return rows;
}

std::string change_text(const std::optional<double>& change) {
  return change ? fmt::format("{:+.1f} %", *change * 100) : "-";
}

std::string interval_text(const CaseComparison& row) {
  return row.change_low && row.change_high
             ? fmt::format("[{:+.1f}, {:+.1f}]", *row.change_low * 100, *row.change_high * 100)
             : "";
}

std::string time_text(const std::optional<double>& ns) { return ns ? format_time_ns(*ns) : "-"; }

std::string remark_text(const CaseComparison& row) {
  std::string text = row.message;
  if (!row.confirmations.empty()) {
    text += text.empty() ? "again: " : "; again: ";
    for (size_t i = 0; i < row.confirmations.size(); ++i) {
      text += fmt::format("{}{:+.1f} %", i == 0 ? "" : ", ", row.confirmations[i] * 100);
    }
  }
  return text;
}

std::vector<std::string> common_words(const Comparison& comparison) {
  if (comparison.cases.size() < 2) {
    return {};
  }
  std::vector<std::string> common = words_of(comparison.cases.front().key);
  for (const CaseComparison& row : comparison.cases) {
    const std::vector<std::string> words = words_of(row.key);
    common.erase(std::remove_if(common.begin(), common.end(), [&](const auto& word) { return !contains(words, word); }),
                 common.end());
  }
  return common;
}

std::string short_key(const std::string& key, const std::vector<std::string>& common) {
  std::string text;
  for (const std::string& word : words_of(key)) {
    if (!contains(common, word)) {
      text += text.empty() ? word : " " + word;
    }
  }
  return text.empty() ? key : text;
}

}  // namespace cudabk
