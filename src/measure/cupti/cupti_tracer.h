// Tracing with CUPTI. Implemented by cupti_tracer.cpp, or by cupti_absent.cpp in builds without a CUDA toolkit.
#pragma once

#include <memory>

#include "measure/trace.h"

namespace cudabk {

// `device` is a CUDA device: no CUPTI call is made before one exists.
Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device& device);

}  // namespace cudabk
