#include "bench/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/units.h"

namespace cudabk {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') {
    s.remove_prefix(1);
  }
  while (!s.empty() && s.back() == ' ') {
    s.remove_suffix(1);
  }
  return s;
}

Result<int64_t> whole_number(std::string_view text) {
  const Result<int64_t> value = parse_int(trim(text));
  if (!value.ok()) {
    return invalid(fmt::format("'{}' is not a whole number below 2^63 (write a,b,c or a:b:step or a:b*factor)", text));
  }
  if (*value < 0) {
    return invalid(fmt::format("{} is negative", *value));
  }
  return *value;
}

struct Range {
  int64_t low = 0, high = 0, step = 1;
  bool multiply = false;
};

// "a:b", "a:b:step" or "a:b*factor".
Result<Range> parse_range(std::string_view text) {
  const size_t colon = text.find(':');
  std::string_view rest = text.substr(colon + 1);
  Range range;
  CUDABK_ASSIGN(range.low, whole_number(text.substr(0, colon)));
  const size_t separator = rest.find_first_of(":*");
  if (separator != std::string_view::npos) {
    range.multiply = rest[separator] == '*';
    CUDABK_ASSIGN(range.step, whole_number(rest.substr(separator + 1)));
    rest = rest.substr(0, separator);
  }
  CUDABK_ASSIGN(range.high, whole_number(rest));
  if (range.low > range.high) {
    return invalid(fmt::format("range '{}' runs backwards", text));
  }
  if (range.multiply ? range.step < 2 || range.low < 1 : range.step < 1) {
    return invalid(fmt::format("range '{}' does not advance", text));
  }
  return range;
}

// The value after `v`, or nothing when it would pass `high`.
std::optional<int64_t> advance(const Range& range, int64_t v) {
  if (range.multiply) {
    return v <= range.high / range.step ? std::optional(v * range.step) : std::nullopt;
  }
  return v <= range.high - range.step ? std::optional(v + range.step) : std::nullopt;
}

Status append(std::vector<int64_t>& values, int64_t v) {
  if (std::find(values.begin(), values.end(), v) == values.end()) {
    values.push_back(v);
  }
  if (values.size() > kMaxSweepValues) {
    return invalid(fmt::format("more than {} values in one sweep", kMaxSweepValues));
  }
  return success();
}

}  // namespace

Result<std::vector<int64_t>> parse_sweep(std::string_view text) {
  CUDABK_ASSIGN(const std::vector<std::string> parts, split_words(text));
  std::vector<int64_t> values;
  for (const std::string& part : parts) {
    if (part.find(':') == std::string::npos) {
      CUDABK_ASSIGN(const int64_t v, whole_number(part));
      CUDABK_TRY(append(values, v));
      continue;
    }
    CUDABK_ASSIGN(const Range range, parse_range(part));
    if (!range.multiply && (range.high - range.low) / range.step >= static_cast<int64_t>(kMaxSweepValues)) {
      return invalid(fmt::format("range '{}' has more than {} values", part, kMaxSweepValues));
    }
    for (std::optional<int64_t> v = range.low; v; v = advance(range, *v)) {
      CUDABK_TRY(append(values, *v));
    }
  }
  return values;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word(trim(text.substr(begin, end - begin)));
    if (word.empty()) {
      return invalid(fmt::format("empty value in '{}'", text));
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      words.push_back(word);
    }
    begin = end + 1;
  }
  return words;
}

Result<std::string> match_word(std::string_view what, std::string_view word, const std::vector<std::string>& allowed) {
  const auto same = [&](const std::string& a) {
    return a.size() == word.size() && std::equal(a.begin(), a.end(), word.begin(), [](char x, char y) {
             return (x >= 'A' && x <= 'Z' ? x + 32 : x) == (y >= 'A' && y <= 'Z' ? y + 32 : y);
           });
  };
  const auto found = std::find_if(allowed.begin(), allowed.end(), same);
  if (found == allowed.end()) {
    return invalid(fmt::format("unknown {} '{}'; valid: {}", what, word, fmt::join(allowed, ", ")));
  }
  return *found;
}

}  // namespace cudabk
