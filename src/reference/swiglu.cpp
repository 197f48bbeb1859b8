// y = silu(x) * g. One tensor: x and g are its halves (swapped: the other way round). Two: x = a, g = b.
#include <cmath>

#include "reference/rows.h"

namespace cudabk {

Result<std::vector<double>> reference_swiglu(const Tensor& y, const Region& region, const Values& values) {
  const bool split = y.src.size() > 1;
  const bool swapped = !split && y.params.as<int32_t>() != 0;
  const Tensor &x = *y.src[0], &g = split ? *y.src[1] : *y.src[0];
  const int64_t n = y.ne[0];
  const int64_t x_start = swapped ? n : 0, g_start = split || swapped ? 0 : n;
  const ColumnRange range = ColumnRange::of(region);
  std::vector<double> row_x(range.size()), row_g(range.size());
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    CUDABK_TRY(values.read_row(x, i1, i2, i3, x_start + range.begin, row_x));
    CUDABK_TRY(values.read_row(g, i1, i2, i3, g_start + range.begin, row_g));
    for (size_t j = 0; j < out.size(); ++j) {
      const auto at = static_cast<size_t>(region.index[0][j] - range.begin);
      out[j] = row_x[at] / (1.0 + std::exp(-row_x[at])) * row_g[at];
    }
    return success();
  });
}

}  // namespace cudabk
