// cpy, cont: element n of the source, in its own logical order, is element n of the result; a block type encodes it.
#include <array>
#include <cmath>

#include "reference/rows.h"

namespace cudabk {
namespace {

constexpr double kInt32Limit = 2147483648.0;

double to_int32(double v) {  // truncates toward zero, saturates, NaN becomes 0
  if (std::isnan(v)) {
    return 0;
  }
  return std::trunc(std::min(std::max(v, -kInt32Limit), kInt32Limit - 1));
}

// One row of the source at a time, read when first needed.
class RowReader {
 public:
  RowReader(const Tensor& t, const Values& values) : t_(t), values_(values), row_(static_cast<size_t>(t.ne[0])) {}

  Result<double> element(int64_t n) {
    const int64_t row = n / t_.ne[0];
    if (row != loaded_) {
      const int64_t i1 = row % t_.ne[1], i2 = row / t_.ne[1] % t_.ne[2], i3 = row / t_.ne[1] / t_.ne[2];
      CUDABK_TRY(values_.read_row(t_, i1, i2, i3, 0, row_));
      loaded_ = row;
    }
    return row_[static_cast<size_t>(n % t_.ne[0])];
  }

 private:
  const Tensor& t_;
  const Values& values_;
  std::vector<double> row_;
  int64_t loaded_ = -1;
};

// Whole rows are encoded: a block's scale depends on all of its elements.
Result<std::vector<double>> quantizing_copy(const Tensor& y, const Region& region, RowReader& source) {
  std::vector<double> row(static_cast<size_t>(y.ne[0]));
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    const int64_t first = y.ne[0] * (i1 + y.ne[1] * (i2 + y.ne[2] * i3));
    for (int64_t j = 0; j < y.ne[0]; ++j) {
      CUDABK_ASSIGN(row[static_cast<size_t>(j)], source.element(first + j));
    }
    CUDABK_TRY(round_to_type(y.type, row));
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = row[static_cast<size_t>(region.index[0][j])];
    }
    return success();
  });
}

Result<std::vector<double>> copy(const Tensor& y, const Region& region, const Values& values) {
  RowReader source(*y.src[0], values);
  const bool truncate = y.type == DType::i32 && y.src[0]->type == DType::f32;
  if (is_quantized(y.type) && y.src[0]->type != y.type) {
    return quantizing_copy(y, region, source);
  }
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    const int64_t first = y.ne[0] * (i1 + y.ne[1] * (i2 + y.ne[2] * i3));
    for (size_t j = 0; j < out.size(); ++j) {
      CUDABK_ASSIGN(const double v, source.element(first + region.index[0][j]));
      out[j] = truncate ? to_int32(v) : v;
    }
    return success();
  });
}

}  // namespace

Result<std::vector<double>> reference_cpy(const Tensor& y, const Region& region, const Values& values) {
  return copy(y, region, values);
}

Result<std::vector<double>> reference_cont(const Tensor& y, const Region& region, const Values& values) {
  return copy(y, region, values);
}

}  // namespace cudabk
