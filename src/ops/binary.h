// Element-wise operations of two tensors: add, mul.
#pragma once

#include "core/result.h"
#include "graph/graph.h"

namespace cudabk {

// y[i] = a[i] op b[i mod b's extents], computed in f32, rounded once. Shape and (unless `type` says otherwise) type of
// a; any strides of dims 1..3. Types (a, b, y): f32,f32,f32; f32,f16,f32; f16,f32,f32; f16,f32,f16; f16,f16,f16.
// kInvalid with both operands when b cannot be repeated to a or the types are others.
Result<Tensor*> add(Graph& graph, Tensor* a, Tensor* b);
Result<Tensor*> add_cast(Graph& graph, Tensor* a, Tensor* b, DType type);
Result<Tensor*> mul(Graph& graph, Tensor* a, Tensor* b);

// The same, written over a: the result is a view of a.
Result<Tensor*> add_inplace(Graph& graph, Tensor* a, Tensor* b);
Result<Tensor*> mul_inplace(Graph& graph, Tensor* a, Tensor* b);

}  // namespace cudabk
