// What the tracer saw of a case, into its row.
#pragma once

#include "bench/result.h"
#include "measure/trace.h"

namespace cudabk {

// Kernel times, gaps and span per op, times per launch; a flag where records are missing or the span differs from the
// time between events. `row` holds copies, launches, timer and breakdown already. as_samples: the spans of the replays
// become the row's samples.
void add_trace(const TraceReport& report, bool as_samples, CaseResult& row);

}  // namespace cudabk
