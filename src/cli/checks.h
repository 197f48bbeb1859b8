// Checks of option values for CLI11: "" for a good one, else what is wrong with it and what is valid, in one line.
// CLI11 puts the option's name in front.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cudabk::cli {

using Check = std::function<std::string(const std::string&)>;

// One of these words, as they are.
Check one_of(std::vector<std::string> words);

// A whole number in [low, high], in digits. CLI11's own reading wraps, cuts and rounds.
Check whole_number(int64_t low, int64_t high);

// A whole number below 2^64.
std::string check_seed(const std::string& text);

}  // namespace cudabk::cli
