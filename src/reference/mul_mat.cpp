// dst[i, j, p, q] = sum over c of a[c, i, p / (B2/A2), q / (B3/A3)] * b[c, j, p, q], in double, with the exact decoded
// values of both operands.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/parallel.h"
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

constexpr int64_t kProductsPerThread = 1 << 23;

// One slice: slice[j * rows + i] = row i of the weights times column j of the inputs. `read(i, row)` gives weights.
template <class Read>
Status multiply_slice(const std::vector<double>& inputs, size_t k, size_t rows, bool parallel, Read read,
                      std::vector<double>& slice) {
  const size_t cols = slice.size() / std::max<size_t>(1, rows);
  const auto products_per_row = static_cast<int64_t>(std::max<size_t>(1, k * cols));
  const int64_t part = kProductsPerThread / products_per_row + 1;
  return in_parallel(static_cast<int64_t>(rows), part, parallel ? 0 : 1, [&](int64_t begin, int64_t end) -> Status {
    std::vector<double> weights(k);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      CUDABK_TRY(read(i, std::span(weights)));
      for (size_t j = 0; j < cols; ++j) {
        slice[j * rows + i] = dot(weights.data(), inputs.data() + j * k, k);
      }
    }
    return success();
  });
}

// The region of the product after `change` has been applied to every row of both operands.
template <class Change>
Result<std::vector<double>> product(const Tensor& t, const Region& region, const Values& values, Change change) {
  const Tensor& a = *t.src[0];
  const Tensor& b = *t.src[1];
  const auto k = static_cast<size_t>(a.ne[0]);
  const std::vector<int64_t>& rows = region.index[0];
  const std::vector<int64_t>& cols = region.index[1];
  const std::span<const std::byte> memory = values.memory_of(a);  // read by several threads; computed rows by one
  std::vector<double> result;
  result.reserve(static_cast<size_t>(region.count()));
  std::vector<double> inputs(k * cols.size());
  std::vector<double> slice(rows.size() * cols.size());
  for (const int64_t i3 : region.index[3]) {
    for (const int64_t i2 : region.index[2]) {
      for (size_t j = 0; j < cols.size(); ++j) {
        const auto column = std::span(inputs).subspan(j * k, k);
        CUDABK_TRY(values.read_row(b, cols[j], i2, i3, 0, column));
        change(column);
      }
      const int64_t a2 = i2 / (b.ne[2] / a.ne[2]);
      const int64_t a3 = i3 / (b.ne[3] / a.ne[3]);
      const auto read = [&](size_t i, std::span<double> row) -> Status {
        CUDABK_TRY(memory.empty() ? values.read_row(a, rows[i], a2, a3, 0, row)
                                  : read_memory_row(a, memory, rows[i], a2, a3, 0, row));
        change(row);
        return success();
      };
      CUDABK_TRY(multiply_slice(inputs, k, rows.size(), !memory.empty(), read, slice));
      result.insert(result.end(), slice.begin(), slice.end());
    }
  }
  return result;
}

}  // namespace

Result<std::vector<double>> reference_mul_mat(const Tensor& t, const Region& region, const Values& values) {
  return product(t, region, values, [](std::span<double>) {});
}

Result<double> reference_magnitude(const Tensor& t, const Region& region, const Values& values) {
  if (t.op != "mul_mat" || region.count() == 0) {
    return 0.0;
  }
  const auto square = [](std::span<double> row) {
    for (double& v : row) {
      v *= v;
    }
  };
  CUDABK_ASSIGN(const std::vector<double> squares, product(t, region, values, square));
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
  return std::sqrt(sum / static_cast<double>(squares.size()));
}

}  // namespace cudabk
