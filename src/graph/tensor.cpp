#include "graph/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cudabk {

int64_t element_count(const Tensor& t) { return t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]; }
int64_t row_count(const Tensor& t) { return t.ne[1] * t.ne[2] * t.ne[3]; }

bool is_empty(const Tensor& t) {
  return std::any_of(t.ne.begin(), t.ne.end(), [](int64_t n) { return n <= 0; });
}

int64_t byte_size(const Tensor& t) {
  if (is_empty(t)) {
    return 0;
  }
  const int64_t block = block_elements(t.type);
  int64_t bytes = block == 1 ? block_bytes(t.type) + (t.ne[0] - 1) * t.nb[0] : t.ne[0] * t.nb[0] / block;
  for (int i = 1; i < 4; ++i) {
    bytes += (t.ne[i] - 1) * t.nb[i];
  }
  return bytes;
}

bool is_view_op(const Tensor& t) {
  return t.op == kOpNone || t.op == kOpView || t.op == kOpReshape || t.op == kOpPermute || t.op == kOpTranspose;
}

Strides dense_strides(DType type, const Shape& ne) {
  Strides nb{};
  nb[0] = block_bytes(type);
  nb[1] = nb[0] * (ne[0] / block_elements(type));
  nb[2] = nb[1] * ne[1];
  nb[3] = nb[2] * ne[2];
  return nb;
}

bool has_contiguous_rows(const Tensor& t) {
  return t.ne[0] == block_elements(t.type) || t.nb[0] == block_bytes(t.type);
}

bool is_contiguous(const Tensor& t, int n) {
  if (!has_contiguous_rows(t)) {
    return false;
  }
  int64_t expected = static_cast<int64_t>(block_bytes(t.type)) * (t.ne[0] / block_elements(t.type));
  for (int i = 1; i < 4; ++i) {
    if (t.ne[i] == 1) {
      continue;
    }
    if (i > n) {
      if (t.nb[i] != expected) {
        return false;
      }
      expected *= t.ne[i];
    } else {
      expected = t.ne[i] * t.nb[i];
    }
  }
  return true;
}

bool is_contiguously_allocated(const Tensor& t) {
  return byte_size(t) == element_count(t) / block_elements(t.type) * block_bytes(t.type);
}

bool is_transposed(const Tensor& t) { return t.nb[0] > t.nb[1]; }
bool is_permuted(const Tensor& t) { return t.nb[0] > t.nb[1] || t.nb[1] > t.nb[2] || t.nb[2] > t.nb[3]; }
bool same_shape(const Tensor& a, const Tensor& b) { return a.ne == b.ne; }
bool same_layout(const Tensor& a, const Tensor& b) { return a.type == b.type && a.ne == b.ne && a.nb == b.nb; }

bool can_repeat(const Tensor& x, const Tensor& y) {
  if (is_empty(x)) {
    return is_empty(y);
  }
  for (int i = 0; i < 4; ++i) {
    if (y.ne[i] % x.ne[i] != 0) {
      return false;
    }
  }
  return true;
}

bool can_repeat_rows(const Tensor& x, const Tensor& y) { return x.ne[0] == y.ne[0] && can_repeat(x, y); }

std::string shape_text(const Shape& ne) {
  int last = 3;
  while (last > 0 && ne[last] == 1) {
    --last;
  }
  return fmt::format("[{}]", fmt::join(ne.begin(), ne.begin() + last + 1, ","));
}

std::string describe(const Tensor& t) {
  std::string text = fmt::format("{}{}", dtype_name(t.type), shape_text(t.ne));
  if (!is_contiguous(t)) {
    text += fmt::format(" strides [{}]", fmt::join(t.nb, ","));
  }
  return text;
}

}  // namespace cudabk
