// The executor behind Execution: on a stream, or as one graph. Internal to the backend.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace cudabk {

// Binds `plan` and, in graph mode, builds the executable graph; falls back to eager with a recorded reason when the
// device refuses it. `lease` holds the plan's scratch arena; bindings.scratch must be its address.
Result<std::unique_ptr<Execution>> make_execution(Plan plan, const Graph& graph, const Bindings& bindings,
                                                  Device& device, LaunchMode mode, ScratchPool::Lease lease,
                                                  BackendCounters& counters);

}  // namespace cudabk
