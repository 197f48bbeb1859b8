#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/table.h"
#include "core/text.h"
#include "results/render.h"
#include "results/render_rows.h"

namespace cudabk {
namespace {

constexpr std::string_view kRed = "\x1b[31m", kGreen = "\x1b[32m", kYellow = "\x1b[33m", kDim = "\x1b[2m",
                           kBold = "\x1b[1m", kReset = "\x1b[0m";

std::string_view color_of(const CaseComparison& row) {
  if (is_failure(row)) {
    return kRed;
  }
  switch (row.verdict) {
    case Verdict::kInconclusive:
    case Verdict::kMissing:
      return kYellow;
    case Verdict::kImproved:
      return kGreen;
    case Verdict::kUnchangedCode:
      return kDim;
    default:
      return "";
  }
}

std::string painted(std::string text, std::string_view color, bool enabled) {
  if (!enabled || color.empty() || text.empty()) {
    return text;
  }
  const bool newline = text.back() == '\n';
  if (newline) {
    text.pop_back();
  }
  return fmt::format("{}{}{}{}", color, text, kReset, newline ? "\n" : "");
}

std::vector<std::string> cells_of(const CaseComparison& row, const std::vector<std::string>& common) {
  return {std::string(verdict_name(row.verdict)),
          change_text(row.change),
          interval_text(row),
          time_text(row.baseline_ns),
          time_text(row.candidate_ns),
          short_key(row.key, common),
          remark_text(row)};
}

std::string sides_text(const Comparison& comparison) {
  std::string text;
  for (const auto& [name, side] :
       {std::pair("baseline ", &comparison.baseline), {"candidate", &comparison.candidate}}) {
    if (!side->path.empty() || !side->files.empty()) {
      text += fmt::format("{}  {}\n", name,
                          printable(fmt::format("{}: {}, cudabk {}, {}", side->path, fmt::join(side->devices, ", "),
                                                fmt::join(side->versions, ", "), side->started)));
    }
  }
  return text;
}

}  // namespace

std::string verdict_table(const GateVerdict& verdict, const TableOptions& options) {
  const Comparison& comparison = verdict.comparison;
  std::string text = sides_text(comparison);
  if (!comparison.cases.empty()) {
    const std::vector<std::string> common = common_words(comparison);
    if (!common.empty()) {
      text += fmt::format("all cases: {}\n", printable(fmt::format("{}", fmt::join(common, " "))));
    }
    TextTable table({{"verdict", false},
                     {"change"},
                     {"interval"},
                     {"baseline"},
                     {"candidate"},
                     {"case", false},
                     {"remarks", false}});
    std::vector<const CaseComparison*> shown;
    size_t quiet = 0;
    for (const CaseComparison* row : worst_first(comparison)) {
      if (needs_attention(*row) || quiet++ < options.quiet_rows) {
        shown.push_back(row);
        const std::vector<std::string> cells = cells_of(*row, common);
        for (size_t i = 0; i < cells.size(); ++i) {
          table.widen(i, cells[i]);
        }
      }
    }
    text += "\n";
    text += table.header();
    for (const CaseComparison* row : shown) {
      text += painted(table.row(cells_of(*row, common)), color_of(*row), options.color);
    }
    if (shown.size() < comparison.cases.size()) {
      text += fmt::format("... and {} more that need no attention\n", comparison.cases.size() - shown.size());
    }
    text += "\n";
  }
  for (const std::string& note : comparison.notes) {
    text += fmt::format("note: {}\n", printable(note));
  }
  // The first finding is in the summary.
  for (size_t i = 1; i < verdict.findings.size(); ++i) {
    text += fmt::format("also: {}\n", printable(verdict.findings[i].message));
  }
  const std::string_view color = verdict.findings.empty() ? kGreen : kRed;
  return text + painted(painted(printable(summary_line(verdict)) + "\n", color, options.color), kBold, options.color);
}

}  // namespace cudabk
