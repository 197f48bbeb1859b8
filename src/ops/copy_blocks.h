// Copies between f32 and block types (cpy): blocks of 32 elements, whatever the shapes around them.
#pragma once

#include "ops/op_def.h"

namespace cudabk {

// f32 to the types that kernels encode; q4_0, q4_1, q5_0, q5_1 and q8_0 to f32.
bool converts_blocks(DType from, DType to);

// For such a pair of types: rows dense on both sides and whole blocks long.
Support supports_block_copy(const Tensor& src, const Tensor& dst);

// Precondition: supported, not empty.
Result<Launch> lower_block_copy(const Tensor& src, const Tensor& dst, LowerContext& ctx);

}  // namespace cudabk
