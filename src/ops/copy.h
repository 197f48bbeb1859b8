// Copies that change layout, type or shape: cpy, cont.
#pragma once

#include "core/result.h"
#include "graph/graph.h"

namespace cudabk {

// Writes a into target: element n of a, in its own logical order, becomes element n of target, converted to target's
// type. The result is a view of target. Shapes may differ, element counts not. Types: f32, f16, bf16 among each other
// and i32 <-> f32 (truncation toward zero, saturating) with any strides; f32 to q4_0, q4_1, q5_0, q5_1, q8_0 and
// iq4_nl, and these but iq4_nl to f32, with dense rows of whole blocks; every type to itself where both are dense.
Result<Tensor*> cpy(Graph& graph, Tensor* a, Tensor* target);

// The same into a new dense tensor of `type` shaped like a.
Result<Tensor*> cast(Graph& graph, Tensor* a, DType type);

// A dense copy of a, of the same type; optionally of another shape with as many elements.
Result<Tensor*> cont(Graph& graph, Tensor* a);
Result<Tensor*> cont(Graph& graph, Tensor* a, Shape ne);

}  // namespace cudabk
