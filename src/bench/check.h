// The device's results of one copy against the reference, node by node.
#pragma once

#include "backend/plan.h"
#include "bench/replicas.h"
#include "bench/result.h"
#include "core/result.h"

namespace cudabk {

struct CheckOptions {
  bool whole = false;  // every element; else tile edges and a random sample
  uint64_t seed = 42;  // of the sample
};

// Precondition: the plan of `replicas.graph()` ran and the stream was synchronised. Every materialised node of `copy`
// is compared with the reference of its sources' device values, so that an error is found where it arises; nodes that a
// fusion swallowed are computed by the reference. Guard zones are checked too. A difference is a CheckResult with
// passed == false, not an error.
Result<CheckResult> check_copy(Replicas& replicas, const Plan& plan, int copy, const CheckOptions& options);

}  // namespace cudabk
