// Walking a region row by row.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "reference/reference.h"

namespace cudabk {

// Calls f(i1, i2, i3, out) for every row of the region in result order; `out` takes one value per entry of index[0].
// f returns a Status; the first failure ends the walk.
template <class F>
Result<std::vector<double>> for_each_region_row(const Region& region, F&& f) {
  std::vector<double> result(static_cast<size_t>(region.count()));
  const size_t cols = region.index[0].size();
  size_t at = 0;
  if (result.empty()) {
    return result;
  }
  for (const int64_t i3 : region.index[3]) {
    for (const int64_t i2 : region.index[2]) {
      for (const int64_t i1 : region.index[1]) {
        CUDABK_TRY(f(i1, i2, i3, std::span<double>(result).subspan(at, cols)));
        at += cols;
      }
    }
  }
  return result;
}

// The columns [begin, end) of a row that the region touches, read once per row.
struct ColumnRange {
  int64_t begin = 0, end = 0;
  static ColumnRange of(const Region& region) {
    const auto [low, high] = std::minmax_element(region.index[0].begin(), region.index[0].end());
    return region.index[0].empty() ? ColumnRange{} : ColumnRange{*low, *high + 1};
  }
  size_t size() const { return static_cast<size_t>(end - begin); }
};

}  // namespace cudabk
