// Reading tensor elements: from memory where it is given, from the producing op where it is not.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reference/reference.h"

namespace cudabk {
namespace {

// Reads `out.size()` elements of a plain type, `stride` bytes apart.
template <class T, class Convert>
void read_strided(const std::byte* p, int64_t stride, std::span<double> out, Convert convert) {
  for (double& value : out) {
    T raw;
    std::memcpy(&raw, p, sizeof(T));
    value = static_cast<double>(convert(raw));
    p += stride;
  }
}

void read_plain(DType type, const std::byte* p, int64_t stride, std::span<double> out) {
  const auto same = [](auto v) { return v; };
  switch (type) {
    case DType::f16:
      return read_strided<uint16_t>(p, stride, out, f16_to_f32);
    case DType::bf16:
      return read_strided<uint16_t>(p, stride, out, bf16_to_f32);
    case DType::f64:
      return read_strided<double>(p, stride, out, same);
    case DType::i8:
      return read_strided<int8_t>(p, stride, out, same);
    case DType::i16:
      return read_strided<int16_t>(p, stride, out, same);
    case DType::i32:
      return read_strided<int32_t>(p, stride, out, same);
    case DType::i64:
      return read_strided<int64_t>(p, stride, out, same);
    default:
      return read_strided<float>(p, stride, out, same);
  }
}

// Elements [begin, begin + out.size()) of a row of dense blocks at `row`.
void read_blocks(DType type, const std::byte* row, int64_t begin, std::span<double> out) {
  const int64_t block = block_elements(type);
  const int64_t first = begin / block;
  const int64_t last = (begin + static_cast<int64_t>(out.size()) + block - 1) / block;
  std::vector<float> decoded(static_cast<size_t>((last - first) * block));
  decode_row(type, row + first * block_bytes(type), static_cast<int64_t>(decoded.size()), decoded.data());
  std::copy_n(decoded.begin() + (begin - first * block), out.size(), out.begin());
}

Status check_bounds(const Tensor& t, const std::array<int64_t, 4>& start, size_t count) {
  for (int d = 0; d < 4; ++d) {
    const int64_t end = start[d] + (d == 0 ? static_cast<int64_t>(count) : 1);
    if (start[d] < 0 || end > t.ne[d]) {
      return internal_error(
          fmt::format("{}: elements {}..{} of dimension {} asked of {}", t.name, start[d], end, d, describe(t)));
    }
  }
  return success();
}

// The tensor that wrote the elements a view shows: the first in its chain of sources that is not a view.
const Tensor& producer(const Tensor& t) {
  const Tensor* p = &t;
  while (is_view_op(*p) && !p->src.empty()) {
    p = p->src[0];
  }
  return *p;
}

// Element of `t` at `offset` bytes from its first; false when none begins there.
bool locate(const Tensor& t, int64_t offset, std::array<int64_t, 4>& element) {
  std::array<int, 4> dims{0, 1, 2, 3};
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return t.nb[a] > t.nb[b]; });
  for (const int d : dims) {
    element[d] = 0;
    if (t.ne[d] > 1) {
      element[d] = offset / t.nb[d];
      offset -= element[d] * t.nb[d];
    }
    if (element[d] < 0 || element[d] >= t.ne[d]) {
      return false;
    }
  }
  return offset == 0;
}

}  // namespace

Status read_memory_row(const Tensor& t, std::span<const std::byte> memory, int64_t i1, int64_t i2, int64_t i3,
                       int64_t begin, std::span<double> out) {
  CUDABK_TRY(check_bounds(t, {begin, i1, i2, i3}, out.size()));
  const int64_t size = static_cast<int64_t>(memory.size());
  if (t.view_offset + byte_size(t) > size) {
    return internal_error(fmt::format("{}: {} at byte {} lies outside the {} bytes given for '{}'", t.name, describe(t),
                                      t.view_offset, size, t.root().name));
  }
  const std::byte* row = memory.data() + t.view_offset + i1 * t.nb[1] + i2 * t.nb[2] + i3 * t.nb[3];
  if (!is_quantized(t.type)) {
    read_plain(t.type, row + begin * t.nb[0], t.nb[0], out);
    return success();
  }
  if (!has_contiguous_rows(t)) {
    return unsupported(fmt::format("{}: rows of {} are not dense blocks", t.name, describe(t)));
  }
  read_blocks(t.type, row, begin, out);
  return success();
}

std::span<const std::byte> Values::memory_of(const Tensor& t) const {
  const Tensor& source = producer(t);
  return &source == &t.root() ? bytes(source) : std::span<const std::byte>{};
}

Status Values::read_row(const Tensor& t, int64_t i1, int64_t i2, int64_t i3, int64_t begin,
                        std::span<double> out) const {
  CUDABK_TRY(check_bounds(t, {begin, i1, i2, i3}, out.size()));
  if (out.empty()) {
    return success();
  }
  if (const auto memory = memory_of(t); !memory.empty()) {
    return read_memory_row(t, memory, i1, i2, i3, begin, out);
  }
  const Tensor& source = producer(t);
  if (source.op == kOpNone) {
    return internal_error(fmt::format("no values are known for '{}' ({})", source.name, describe(source)));
  }
  std::vector<double> storage;
  if (&source == &t) {
    CUDABK_ASSIGN(const std::span<const double> row, computed_row(t, i1, i2, i3, storage));
    std::copy_n(row.begin() + begin, out.size(), out.begin());
    return success();
  }
  if (is_quantized(t.type)) {
    return unsupported(fmt::format("{}: a view of a computed {}", t.name, describe(source)));
  }
  // Element by element: a permuted view's row crosses the source's rows.
  std::array<int64_t, 4> at{-1, -1, -1, -1};
  std::span<const double> row;
  const int64_t offset = t.view_offset - source.view_offset + i1 * t.nb[1] + i2 * t.nb[2] + i3 * t.nb[3];
  for (size_t j = 0; j < out.size(); ++j) {
    std::array<int64_t, 4> element{};
    if (!locate(source, offset + (begin + static_cast<int64_t>(j)) * t.nb[0], element)) {
      return unsupported(fmt::format("{}: shows memory that {} did not write", t.name, describe(source)));
    }
    if (!std::equal(element.begin() + 1, element.end(), at.begin() + 1)) {
      CUDABK_ASSIGN(row, computed_row(source, element[1], element[2], element[3], storage));
      at = element;
    }
    out[j] = row[static_cast<size_t>(element[0])];
  }
  return success();
}

Result<std::span<const double>> Values::computed_row(const Tensor& t, int64_t i1, int64_t i2, int64_t i3,
                                                     std::vector<double>& storage) const {
  Region region;
  region.index = {std::vector<int64_t>(static_cast<size_t>(t.ne[0])), {i1}, {i2}, {i3}};
  std::iota(region.index[0].begin(), region.index[0].end(), int64_t{0});
  CUDABK_ASSIGN(storage, evaluate_reference(t, region, *this));
  CUDABK_TRY(round_result(t.type, storage));
  return std::span<const double>(storage);
}

Status round_to_type(DType type, std::span<double> values) {
  if (type == DType::f32 || type == DType::f64 || type == DType::i8 || type == DType::i16 || type == DType::i32 ||
      type == DType::i64) {
    return success();
  }
  std::vector<float> narrow(values.begin(), values.end());
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(values.size()))));
  CUDABK_TRY(encode_row(type, narrow.data(), static_cast<int64_t>(narrow.size()), row.data()));
  decode_row(type, row.data(), static_cast<int64_t>(narrow.size()), narrow.data());
  std::copy(narrow.begin(), narrow.end(), values.begin());
  return success();
}

Status round_result(DType type, std::span<double> values) {
  return is_quantized(type) ? success() : round_to_type(type, values);
}

}  // namespace cudabk
