// Tracing with CUPTI. Implemented by cupti_tracer.cpp, or by cupti_absent.cpp in builds without a CUDA toolkit.
#pragma once

#include <memory>

#include "measure/trace.h"

namespace cudabk {

struct CuptiApi;

// `device` is a CUDA device: no CUPTI call is made before one exists.
Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device& device);
// With a given library, which outlives the tracer; only in builds with a CUDA toolkit.
Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device& device, const CuptiApi& api);

}  // namespace cudabk
