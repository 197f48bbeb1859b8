// How much slower a case may get before it counts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

class Thresholds {
 public:
  Thresholds() = default;  // 3 % for every case
  explicit Thresholds(double fallback) : fallback_(fallback) {}

  // Rules from text: one "REGEX LIMIT" per line, the limit last ("2%" or "0.02", at most 1000%); empty lines and lines
  // that start with # are left out. The first rule whose expression is found in a case's key holds. kInvalid with
  // `name` and line.
  Status add_rules(std::string_view text, std::string_view name);
  Status add_file(const std::filesystem::path& path);

  double of(const std::string& key) const;
  double fallback() const { return fallback_; }
  std::vector<std::string> rule_texts() const;  // "REGEX 2%", for verdicts

 private:
  struct Rule;
  double fallback_ = 0.03;
  std::vector<std::shared_ptr<const Rule>> rules_;
};

}  // namespace cudabk
