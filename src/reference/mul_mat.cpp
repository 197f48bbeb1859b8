// dst[i, j, p, q] = sum over c of a[c, i, p / (B2/A2), q / (B3/A3)] * b[c, j, p, q], in double, with the exact decoded
// values of both operands.
#include <array>
#include <cmath>

#include "reference/reference.h"

namespace cudabk {
Result<std::vector<double>> reference_mul_mat(const Tensor& t, const Region& region, const Values& values);

namespace {

// Independent partial sums let the compiler use vector registers.
double dot(const double* x, const double* y, size_t n) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += x[c + lane] * y[c + lane];
    }
  }
  double total = 0;
  for (; c < n; ++c) {
    total += x[c] * y[c];
  }
  for (const double s : sums) {
    total += s;
  }
  return total;
}

}  // namespace

Result<std::vector<double>> reference_mul_mat(const Tensor& t, const Region& region, const Values& values) {
  const Tensor& a = *t.src[0];
  const Tensor& b = *t.src[1];
  const auto k = static_cast<size_t>(a.ne[0]);
  const auto& [rows, cols, slices2, slices3] = region.index;
  std::vector<double> result;
  result.reserve(static_cast<size_t>(region.count()));
  std::vector<double> weights(k);
  std::vector<double> inputs(k * cols.size());
  std::vector<double> slice(rows.size() * cols.size());
  for (const int64_t i3 : slices3) {
    for (const int64_t i2 : slices2) {
      for (size_t j = 0; j < cols.size(); ++j) {
        CUDABK_TRY(values.read_row(b, cols[j], i2, i3, 0, std::span(inputs).subspan(j * k, k)));
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        CUDABK_TRY(values.read_row(a, rows[i], i2 / (b.ne[2] / a.ne[2]), i3 / (b.ne[3] / a.ne[3]), 0, weights));
        for (size_t j = 0; j < cols.size(); ++j) {
          slice[j * rows.size() + i] = dot(weights.data(), inputs.data() + j * k, k);
        }
      }
      result.insert(result.end(), slice.begin(), slice.end());
    }
  }
  return result;
}

}  // namespace cudabk
