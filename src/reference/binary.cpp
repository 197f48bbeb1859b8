// add, mul: y[i] = a[i] op b[i mod b's extents].
#include "reference/rows.h"

namespace cudabk {
namespace {

template <class Op>
Result<std::vector<double>> binary(const Tensor& y, const Region& region, const Values& values, Op op) {
  const Tensor &a = *y.src[0], &b = *y.src[1];
  const ColumnRange range = ColumnRange::of(region);
  std::vector<double> row_a(range.size()), row_b(static_cast<size_t>(b.ne[0]));
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    CUDABK_TRY(values.read_row(a, i1, i2, i3, range.begin, row_a));
    CUDABK_TRY(values.read_row(b, i1 % b.ne[1], i2 % b.ne[2], i3 % b.ne[3], 0, row_b));
    for (size_t j = 0; j < out.size(); ++j) {
      const int64_t i0 = region.index[0][j];
      out[j] = op(row_a[static_cast<size_t>(i0 - range.begin)], row_b[static_cast<size_t>(i0 % b.ne[0])]);
    }
    return success();
  });
}

}  // namespace

Result<std::vector<double>> reference_add(const Tensor& y, const Region& region, const Values& values) {
  return binary(y, region, values, [](double a, double b) { return a + b; });
}

Result<std::vector<double>> reference_mul(const Tensor& y, const Region& region, const Values& values) {
  return binary(y, region, values, [](double a, double b) { return a * b; });
}

}  // namespace cudabk
