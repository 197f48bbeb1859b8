// Gated linear units: swiglu.
#pragma once

#include "core/result.h"
#include "graph/graph.h"

namespace cudabk {

// y = silu(x) * g, computed in f32, rounded once. a: f32 or f16, dense rows, any row strides; y dense, type of a.
// One tensor: a = [2n (+1), ...], y = [n, ...]; x is the first n elements of a row, g the next n; swapped: the other
// way round. kInvalid for other types.
Result<Tensor*> swiglu(Graph& graph, Tensor* a, bool swapped = false);
// Two tensors of the same type and shape: x = a, g = b.
Result<Tensor*> swiglu_split(Graph& graph, Tensor* a, Tensor* b);

}  // namespace cudabk
