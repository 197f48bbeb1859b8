// The machine's own limits, measured in the same process as what is compared with them.
#pragma once

#include <atomic>
#include <string>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

struct MachineLimits {
  double read_gbps = 0;     // 10^9 bytes per second
  double copy_gbps = 0;     // bytes read plus bytes written
  double gemm_tflops = 0;   // bf16 operands, f32 accumulation, best of three large shapes; 0: see gemm_reason
  double sm_clock_mhz = 0;  // under load, right after the GEMMs; on the emulated device the host's cycle counter
  std::string gemm_shape;   // "8192x8192x8192"
  std::string gemm_reason;  // why there is no gemm_tflops; empty otherwise
  std::string read_kernel, copy_kernel;  // the variants that won
  bool emulated = false;                 // then these are figures of the emulation: never compare them with a GPU's
};

// Measures (blocks; about one to two seconds on a GPU). Needs up to 2 GiB of device memory, less where less is free;
// kUnfit when not even 64 MiB are. `interrupted` may be nullptr.
Result<MachineLimits> measure_limits(Device& device, const std::atomic<bool>* interrupted);

// The same, measured at the first call per device and process.
Result<MachineLimits> machine_limits(Device& device, const std::atomic<bool>* interrupted = nullptr);

}  // namespace cudabk
