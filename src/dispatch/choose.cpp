#include <fmt/format.h>

#include <algorithm>

#include "dispatch/profile.h"

namespace cudabk {

int64_t Problem::dim(std::string_view name) const {
  for (const auto& [n, v] : dims) {
    if (n == name) {
      return v;
    }
  }
  return 0;
}

std::string Problem::text() const {
  std::string text = op;
  if (!key.empty()) {
    text += " " + key;
  }
  for (const auto& [n, v] : dims) {
    text += fmt::format(" {}={}", n, v);
  }
  return text;
}

std::string config_text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

const Family* find_family(std::span<const Family> families, std::string_view name) {
  const auto it = std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.name == name; });
  return it == families.end() ? nullptr : &*it;
}

const ConfigParam* find_param(const Family& family, std::string_view name) {
  const auto it =
      std::find_if(family.params.begin(), family.params.end(), [&](const ConfigParam& p) { return p.name == name; });
  return it == family.params.end() ? nullptr : &*it;
}

Config complete_config(const Family& family, const Config& given) {
  Config config;
  for (const ConfigParam& p : family.params) {
    const auto it = given.find(p.name);
    config[p.name] = it != given.end() ? it->second : p.fallback;
  }
  return config;
}

namespace {

// "" when the rule's intervals hold, else the first that does not.
std::string mismatch(const Rule& rule, const Problem& problem) {
  for (const auto& [name, interval] : rule.when) {
    const int64_t value = problem.dim(name);
    if (!interval.contains(value)) {
      return interval.high == INT64_MAX
                 ? fmt::format("{} = {} is below {}", name, value, interval.low)
                 : fmt::format("{} = {} is outside {}..{}", name, value, interval.low, interval.high);
    }
  }
  return "";
}

}  // namespace

Result<Choice> choose(const Problem& problem, const DeviceInfo& device, const Table& table,
                      std::span<const Family> families) {
  Choice choice;
  for (size_t i = 0; i < table.rules.size(); ++i) {
    const Rule& rule = table.rules[i];
    const std::string text = fmt::format("rule {} ({})", i, rule_text(rule));
    if (std::string why = mismatch(rule, problem); !why.empty()) {
      choice.passed_over.emplace_back(text, std::move(why));
      continue;
    }
    const Family* family = find_family(families, rule.use);
    if (family == nullptr) {
      choice.passed_over.emplace_back(text, "no such family in this build");
      continue;
    }
    Config config = complete_config(*family, rule.config);
    if (const Support s = family->applicable(problem, config, device); !s) {
      choice.passed_over.emplace_back(text, s.reason);
      continue;
    }
    choice.family = family->name;
    choice.config = std::move(config);
    choice.rule = static_cast<int>(i);
    return choice;
  }
  for (const Family& family : families) {
    Config config = complete_config(family);
    if (const Support s = family.applicable(problem, config, device); !s) {
      choice.passed_over.emplace_back("last resort " + family.name, s.reason);
      continue;
    }
    choice.family = family.name;
    choice.config = std::move(config);
    return choice;
  }
  std::string reasons;
  for (const auto& [rule, why] : choice.passed_over) {
    reasons += fmt::format("; {}: {}", rule, why);
  }
  return unsupported(fmt::format("{}: no kernel can run on {}{}", problem.text(), device.name, reasons));
}

}  // namespace cudabk
