// CUDA runtime results as errors.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "core/result.h"

namespace cudabk {

// The error of a failed call, and the runtime's last error cleared so that it does not show up again elsewhere.
// kUnfit for what the machine lacks (device, driver, memory), else kInternal.
Error cuda_error(cudaError_t code, std::string_view what);

// Success, or cuda_error(code, what).
Status cuda_check(cudaError_t code, std::string_view what);

}  // namespace cudabk
