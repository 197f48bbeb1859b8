// The GEMM library of the emulated device: a blocked loop.
#pragma once

#include <atomic>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// Runs `call` on the processor's cores and returns when it is done. kInvalid for types, sizes or leading dimensions
// that the call's description does not allow; kInterrupted when `interrupted` (may be null) became true before the end.
Status run_host_gemm(const GemmCall& call, const std::atomic<bool>* interrupted);

}  // namespace cudabk
