// RMS norm, alone or times a gain.
#pragma once

#include "core/result.h"
#include "graph/graph.h"
#include "ops/op_def.h"

namespace cudabk {

// y = x / sqrt(mean(x^2) + eps) per row of ne[0] elements. x: f32, dense rows, any row strides. y: like x, dense.
// kInvalid when x is not f32 or eps is negative.
Result<Tensor*> rms_norm(Graph& graph, Tensor* x, float eps);
// Written over x: the result is a view of x.
Result<Tensor*> rms_norm_inplace(Graph& graph, Tensor* x, float eps);

// The eps that a node of this op was built with.
float rms_norm_eps(const Tensor& y);

// Whether dst = rms_norm(x) * gain is one kernel: all f32, dense rows, dst shaped like x, gain's rows as long as x's
// and repeating by modulo. The reason for a no is what a fusion rule reports.
Support supports_rms_norm_gain(const Tensor& x, const Tensor& gain, const Tensor& dst);

// The launch for dst = rms_norm(x) [* gain]. Preconditions: nothing is empty; supports_rms_norm_gain where gain is not
// null; x and dst as OpDef::supports of rms_norm wants them.
Result<Launch> lower_rms_norm(const Tensor& x, const Tensor* gain, const Tensor& dst, float eps, LowerContext& ctx);

}  // namespace cudabk
