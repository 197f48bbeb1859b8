// Values of one axis from the command line: "1,8,64", "1:16:4" (step), "1:64*2" (factor), and mixtures of these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

// Whole numbers >= 0, in the order written, repetitions removed. kInvalid for an empty element, a negative number, one
// that does not fit in 63 bits, a range that runs backwards, a step or factor that does not advance, or more than
// `kMaxSweepValues` values.
inline constexpr size_t kMaxSweepValues = 100000;
Result<std::vector<int64_t>> parse_sweep(std::string_view text);

// Words separated by commas, blanks trimmed, repetitions removed. kInvalid for an empty element.
Result<std::vector<std::string>> split_words(std::string_view text);

// The entry of `allowed` that equals `word` in any case; kInvalid with `what` and all of them otherwise.
Result<std::string> match_word(std::string_view what, std::string_view word, const std::vector<std::string>& allowed);

}  // namespace cudabk
