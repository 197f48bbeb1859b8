// y = x / sqrt(mean(x^2) + eps) per row.
#include <cmath>

#include "reference/rows.h"

namespace cudabk {

Result<std::vector<double>> reference_rms_norm(const Tensor& y, const Region& region, const Values& values) {
  const Tensor& x = *y.src[0];
  const double eps = static_cast<double>(y.params.as<float>());
  std::vector<double> row(static_cast<size_t>(x.ne[0]));
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    CUDABK_TRY(values.read_row(x, i1, i2, i3, 0, row));
    double sum = 0;
    for (const double v : row) {
      sum += v * v;
    }
    const double root = std::sqrt(sum / static_cast<double>(row.size()) + eps);
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = row[static_cast<size_t>(region.index[0][j])] / root;
    }
    return success();
  });
}

}  // namespace cudabk
