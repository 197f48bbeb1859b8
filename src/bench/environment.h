// Where a run takes place, and what the machine can do.
#pragma once

#include <atomic>

#include "bench/result.h"
#include "bench/run.h"
#include "device/device.h"
#include "dispatch/profile.h"
#include "measure/nvml.h"

namespace cudabk {

RunEnvironment describe_environment(Device& device, const Profile& profile, const RunOptions& options);

// What NVML said, as named texts.
void add_gpu_facts(const GpuState& state, std::map<std::string, std::string>& facts);

// Measures read and copy bandwidth and the best large GEMM (seconds). Never fails: what is missing is in the note. The
// emulated device has no limits worth stating.
RunLimits measure_run_limits(Device& device, const std::atomic<bool>* interrupted);

}  // namespace cudabk
