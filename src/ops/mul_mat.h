// Matrix product: dst[i, j, i2, i3] = sum_l weights[l, i, i2 / r2, i3 / r3] * x[l, j, i2, i3].
//   weights  [k, m, A2, A3]  any weight type, rows dense, any row and batch strides
//   x        [k, n, B2, B3]  f32 (f16 only with f16 weights), rows dense, any strides above; r2 = B2/A2, r3 = B3/A3
//   dst      [m, n, B2, B3]  f32, dense
#pragma once

#include "ops/op_def.h"

namespace cudabk {

enum class Precision : int32_t { kDefault = 0, kF32 = 10 };  // values of the graph format

struct MulMatParams {
  Precision precision = Precision::kDefault;
};

// kInvalid for shapes that do not match, a k that is not a multiple of the block length, or transposed operands.
Result<Tensor*> mul_mat(Graph& graph, Tensor* weights, Tensor* x, MulMatParams params = {});

// The product's launches with an optional fused addend: f32, [m] broadcast over columns or the shape of dst, dense.
// kUnsupported when the chosen family has no epilogue for it (the caller then does not fuse).
Result<std::vector<Launch>> lower_mul_mat(const Tensor& product, const Tensor* addend, const Tensor& dst,
                                          LowerContext& ctx);

const OpDef& mul_mat_op();

}  // namespace cudabk
