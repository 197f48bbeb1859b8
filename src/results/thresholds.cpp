#include "results/thresholds.h"

#include <fmt/format.h>

#include <regex>

#include "core/file.h"
#include "core/pattern.h"
#include "measure/sampler.h"

namespace cudabk {

struct Thresholds::Rule {
  std::string text;
  std::regex expression;
  double limit = 0;
};

namespace {

constexpr double kLargestLimit = 10;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? "" : line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

Status Thresholds::add_rules(std::string_view text, std::string_view name) {
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    ++line_number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::string where = fmt::format("{}:{}", name, line_number);
    const size_t blank = line.find_last_of(kBlanks);
    if (blank == std::string_view::npos) {
      return invalid(fmt::format("{}: expected REGEX LIMIT, found '{}'", where, line));
    }
    Result<double> limit = parse_fraction(line.substr(blank + 1), kLargestLimit);
    if (!limit.ok()) {
      return std::move(limit).error().with_context(where);
    }
    auto expression = compile_pattern(std::string(trimmed(line.substr(0, blank))));
    if (!expression.ok()) {
      return std::move(expression).error().with_context(where);
    }
    rules_.push_back(std::make_shared<Rule>(Rule{std::string(line), std::move(expression).value(), *limit}));
  }
  return success();
}

Status Thresholds::add_file(const std::filesystem::path& path) {
  CUDABK_ASSIGN(const std::string text, read_file(path));
  return add_rules(text, path.string());
}

double Thresholds::of(const std::string& key) const {
  for (const auto& rule : rules_) {
    if (std::regex_search(key, rule->expression)) {
      return rule->limit;
    }
  }
  return fallback_;
}

std::vector<std::string> Thresholds::rule_texts() const {
  std::vector<std::string> texts;
  for (const auto& rule : rules_) {
    texts.push_back(rule->text);
  }
  return texts;
}

}  // namespace cudabk
