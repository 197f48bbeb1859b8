// How a copy is done: the narrowest kernel of kernels/copy that fits its two layouts.
#pragma once

#include <vector>

#include "graph/tensor.h"
#include "ops/row_grid.h"

namespace cudabk {

enum class CopyPath {
  kBytes,       // both dense, same type
  kRows,        // rows dense on both sides
  kTransposed,  // dst dense along dim 0, src along dim 1
  kStrided,     // anything else
};

// `dims` describe both sides (operand 0: src, 1: dst), ordered by dst's strides. Empty for a kStrided copy of shapes
// that have no common division into at most four dims: then each side is walked by its own shape.
struct CopyPlan {
  CopyPath path = CopyPath::kStrided;
  std::vector<LoopDim> dims;
};

// Precondition: neither is empty, element counts are equal. The order in which elements are visited does not matter, so
// dims may be split, joined and reordered freely.
CopyPlan plan_copy(const Tensor& src, const Tensor& dst);

// The coarsest division that refines both shapes, from the innermost dim on, with the strides of operands 0 (src) and 1
// (dst) in the units given. Empty when an extent of one side straddles one of the other.
std::vector<LoopDim> common_dims(const Shape& src_ne, const Strides& src_strides, const Shape& dst_ne,
                                 const Strides& dst_strides);

}  // namespace cudabk
