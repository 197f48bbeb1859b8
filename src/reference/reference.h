// Plain, slow, double-precision evaluation of every op, on any region of its result. Independent of kernels/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"
#include "graph/half.h"  // conversions of f16 and bf16

namespace cudabk {

// A product of index lists, one per dimension, innermost first. Results are ordered with dim 0 fastest.
struct Region {
  std::array<std::vector<int64_t>, 4> index;
  int64_t count() const;
  static Region whole(const Tensor& t);
};

// Where tensor values come from: host copies of the memory of root tensors. A tensor whose memory is not given is
// computed from its sources.
class Values {
 public:
  virtual ~Values() = default;
  // The bytes of the root tensor `root`, or an empty span when they are not known.
  virtual std::span<const std::byte> bytes(const Tensor& root) const = 0;

  // Decoded elements [begin, begin + out.size()) of the row (i1, i2, i3) of `t`, views included.
  Status read_row(const Tensor& t, int64_t i1, int64_t i2, int64_t i3, int64_t begin, std::span<double> out) const;

  // The bytes that read_row reads `t` from, those of t.root(); empty when it is computed. Memory that an op shares
  // with its target (cpy, in-place ops) is the target's value, not the op's.
  std::span<const std::byte> memory_of(const Tensor& t) const;

 protected:
  // A whole row of `t`, an op's result whose memory is not given: computed from the sources, then rounded to the
  // tensor's type. The evaluator keeps the rows that one op's region needs.
  virtual Result<std::span<const double>> computed_row(const Tensor& t, int64_t i1, int64_t i2, int64_t i3,
                                                       std::vector<double>& storage) const;
};

// result[j] for the region of a tensor whose rows have `row_length` elements; `read` fills one row (i1, i2, i3).
using RowReader = std::function<Status(int64_t, int64_t, int64_t, std::span<double>)>;
Result<std::vector<double>> gather_region(int64_t row_length, const Region& region, const RowReader& read);

// The same read from given memory: `memory` holds the bytes of t.root().
Status read_memory_row(const Tensor& t, std::span<const std::byte> memory, int64_t i1, int64_t i2, int64_t i3,
                       int64_t begin, std::span<double> out);

// Rounds values to what a tensor of `type` can hold (f64, f32 and integers of any size: unchanged); of a block type
// whole blocks. kUnsupported for a block type without an encoder.
Status round_to_type(DType type, std::span<double> values);
// The same for what evaluate_reference gave: values of a block type are already what its blocks hold.
Status round_result(DType type, std::span<double> values);

// result[j] for the region, in double; rounding to a plain type is not applied. An op that quantizes gives what its
// blocks decode to.
Result<std::vector<double>> evaluate_reference(const Tensor& t, const Region& region, const Values& values);

// The root mean square that the region's elements would have if the products they sum had independent signs; 0 for ops
// that sum no products. A result of few elements may be small by cancellation: its error is to be seen against this.
Result<double> reference_magnitude(const Tensor& t, const Region& region, const Values& values);

// ---- one function per op, in its own file; the list is generated from src/ops/op_list.txt ----
using ReferenceFn = Result<std::vector<double>> (*)(const Tensor&, const Region&, const Values&);

// ---- formats (src/reference/formats) ----
// Decodes `elements` (whole blocks) of `type`; bit-exact in f32 as the format specification says.
void decode_row(DType type, const std::byte* src, int64_t elements, float* dst);
// Encodes a row by the rules of the format specification; kUnsupported for types that have no encoder here.
Status encode_row(DType type, const float* src, int64_t elements, std::byte* dst);
bool has_encoder(DType type);

}  // namespace cudabk
