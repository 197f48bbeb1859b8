// Cases of mul_mat for bench and test: axes, the graph of a case, and what is tested. Internal to src/ops.
#pragma once

#include <span>
#include <vector>

#include "ops/op_def.h"

namespace cudabk {

std::span<const Axis> mul_mat_axes();
Result<Tensor*> build_mul_mat_case(Graph& graph, const CaseParams& params);
std::vector<CaseParams> mul_mat_test_cases();

}  // namespace cudabk
