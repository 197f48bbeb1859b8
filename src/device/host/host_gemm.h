// The GEMM library of the emulated device: a blocked loop.
#pragma once

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// Runs `call` on the processor's cores and returns when it is done. kInvalid for types, sizes or leading dimensions
// that the call's description does not allow.
Status run_host_gemm(const GemmCall& call);

}  // namespace cudabk
