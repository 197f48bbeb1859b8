// What NVML says about a GPU: throttle reasons, clocks, power, other processes. Optional: opened at first use.
// The toolkit ships no header for it here, so the few functions are declared by us.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// A reading; what the GPU or the driver does not tell is absent.
struct GpuState {
  std::optional<int> sm_clock_mhz, memory_clock_mhz;
  std::optional<int> max_sm_clock_mhz;
  std::optional<double> power_w, power_limit_w;
  std::optional<int> temperature_c;
  std::optional<int> utilization_percent;     // of the last sampling period
  std::optional<uint64_t> throttle_mask;      // as NVML gives it
  std::vector<std::string> throttle_reasons;  // those that slow the GPU: "power cap", "thermal", ...
  std::optional<int> foreign_processes;       // compute processes besides this one
};

// Names of the bits that mean a slowed GPU; idle, user-set clocks and display bits are left out.
std::vector<std::string> throttle_reason_names(uint64_t mask);

// Of `pids` on a GPU, those that are not ours. In a container our own pid may not be among them as we know it: then
// one of them is taken to be us.
int count_foreign(const std::vector<uint32_t>& pids, uint32_t own);

class GpuMonitor {
 public:
  // kUnsupported with the reason: emulated device, library missing, GPU not found by its UUID.
  static Result<std::unique_ptr<GpuMonitor>> create(const Device& device);
  virtual ~GpuMonitor() = default;
  virtual GpuState read() const = 0;  // milliseconds; not for use inside a timed window
};

}  // namespace cudabk
