// Where the dispatch table switches to another kernel, and what it chooses between and beside the measured sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/report.h"

namespace cudabk {

struct SwitchPoint {
  std::string before, after;  // keys of the measured neighbours
  // Exact: the first n with the new choice, in both. Else the choice changes somewhere in low < n <= high.
  int64_t low = 0, high = 0;
  bool exact = false;
  std::string from, to;  // "mmvq rows=2 warps=4"
};

// Between neighbours in n of the newest run whose choices differ. Exact where `input.profile` reproduces both.
std::vector<SwitchPoint> switch_points(const ReportInput& input);

struct MapCell {
  std::string type, m, n, k;  // as in the parameters
  std::string family, config;
};

// The profile's choices for every measured (type, m, k) of mul_mat over powers of two of n. Empty without a profile, or
// where it does not reproduce what ran.
std::vector<MapCell> choice_map(const ReportInput& input);

}  // namespace cudabk
