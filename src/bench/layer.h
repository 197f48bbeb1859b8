// A synthetic transformer block part: the gated feed-forward network with its norm and residual.
//   h = rms_norm(x) * gain;  y = x + W_down (swiglu(W_gate h, W_up h))
#pragma once

#include "ops/op_def.h"

namespace cudabk {

// Not in the op list: it is made of ops, and lives here so that it is selected, built, checked and timed like one.
// Axes: type (of the three weights), hidden, ffn, tokens.
const OpDef& layer_target();

// The nodes of one layer, the last of them the result; `x` is f32 [hidden, tokens].
Result<Tensor*> build_ffn(Graph& graph, Tensor* x, DType type, int64_t ffn);

}  // namespace cudabk
