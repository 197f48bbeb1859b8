#include "measure/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace cudabk {
namespace {

// The part of NVML's binary interface that is used here.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr int kClockSm = 1;         // NVML_CLOCK_SM
constexpr int kClockMemory = 2;     // NVML_CLOCK_MEM
constexpr int kTemperatureGpu = 0;  // NVML_TEMPERATURE_GPU
constexpr unsigned kMaxProcesses = 64;

struct NvmlProcess {  // layout of version 2 and 3 of the process list
  uint32_t pid;
  unsigned long long used_memory;
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
struct NvmlUtilization {
  uint32_t gpu, memory;
};

struct NvmlApi {
  int (*init)() = nullptr;
  int (*device_by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, uint32_t*) = nullptr;
  int (*max_clock)(NvmlDevice, int, uint32_t*) = nullptr;
  int (*power)(NvmlDevice, uint32_t*) = nullptr;        // mW
  int (*power_limit)(NvmlDevice, uint32_t*) = nullptr;  // mW
  int (*temperature)(NvmlDevice, int, uint32_t*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*throttle)(NvmlDevice, unsigned long long*) = nullptr;
  int (*processes)(NvmlDevice, uint32_t*, NvmlProcess*) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

template <class Function>
void load(void* library, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {  // newest first
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) {
      return;
    }
  }
}

Result<NvmlApi> open_nvml() {
  void* library = nullptr;
  for (const char* name : {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      break;
    }
  }
  if (library == nullptr) {
    return unsupported("NVML (libnvidia-ml.so.1) was not found");
  }
  NvmlApi api;
  load(library, api.init, {"nvmlInit_v2"});
  load(library, api.device_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  load(library, api.clock, {"nvmlDeviceGetClockInfo"});
  load(library, api.max_clock, {"nvmlDeviceGetMaxClockInfo"});
  load(library, api.power, {"nvmlDeviceGetPowerUsage"});
  load(library, api.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  load(library, api.temperature, {"nvmlDeviceGetTemperature"});
  load(library, api.utilization, {"nvmlDeviceGetUtilizationRates"});
  load(library, api.throttle, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  load(library, api.processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  load(library, api.error_text, {"nvmlErrorString"});
  if (api.init == nullptr || api.device_by_uuid == nullptr) {
    return unsupported("NVML is too old: nvmlInit_v2 or nvmlDeviceGetHandleByUUID is missing");
  }
  if (const int code = api.init(); code != kNvmlSuccess) {
    return unsupported(
        fmt::format("nvmlInit_v2: {} (error {})", api.error_text != nullptr ? api.error_text(code) : "failed", code));
  }
  return api;
}

template <class Function, class... Arguments>
std::optional<int> number(Function function, NvmlDevice device, Arguments... arguments) {
  uint32_t value = 0;
  if (function == nullptr || function(device, arguments..., &value) != kNvmlSuccess) {
    return std::nullopt;
  }
  return static_cast<int>(value);
}

std::optional<double> watts(std::optional<int> milliwatts) {
  return milliwatts.has_value() ? std::optional<double>(*milliwatts / 1000.0) : std::nullopt;
}

class NvmlMonitor final : public GpuMonitor {
 public:
  NvmlMonitor(const NvmlApi& api, NvmlDevice device) : api_(api), device_(device) {}

  GpuState read() const override {
    GpuState state;
    state.sm_clock_mhz = number(api_.clock, device_, kClockSm);
    state.memory_clock_mhz = number(api_.clock, device_, kClockMemory);
    state.max_sm_clock_mhz = number(api_.max_clock, device_, kClockSm);
    state.power_w = watts(number(api_.power, device_));
    state.power_limit_w = watts(number(api_.power_limit, device_));
    state.temperature_c = number(api_.temperature, device_, kTemperatureGpu);
    NvmlUtilization utilization{};
    if (api_.utilization != nullptr && api_.utilization(device_, &utilization) == kNvmlSuccess) {
      state.utilization_percent = static_cast<int>(utilization.gpu);
    }
    unsigned long long mask = 0;
    if (api_.throttle != nullptr && api_.throttle(device_, &mask) == kNvmlSuccess) {
      state.throttle_mask = mask;
      state.throttle_reasons = throttle_reason_names(mask);
    }
    state.foreign_processes = foreign_processes();
    return state;
  }

 private:
  std::optional<int> foreign_processes() const {
    std::array<NvmlProcess, kMaxProcesses> processes{};
    uint32_t count = kMaxProcesses;
    if (api_.processes == nullptr) {
      return std::nullopt;
    }
    const int code = api_.processes(device_, &count, processes.data());
    if (code != kNvmlSuccess && code != kNvmlInsufficientSize) {
      return std::nullopt;
    }
    std::vector<uint32_t> pids;
    for (uint32_t i = 0; i < std::min(count, kMaxProcesses); ++i) {
      pids.push_back(processes[i].pid);
    }
    return count_foreign(pids, static_cast<uint32_t>(getpid()));
  }

  const NvmlApi& api_;
  NvmlDevice device_;
};

}  // namespace

std::vector<std::string> throttle_reason_names(uint64_t mask) {
  constexpr std::pair<uint64_t, const char*> kNames[] = {
      {0x04, "software power cap"}, {0x08, "hardware slowdown"},         {0x10, "sync boost"},
      {0x20, "software thermal"},   {0x40, "hardware thermal slowdown"}, {0x80, "hardware power brake"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames) {
    if ((mask & bit) != 0) {
      names.emplace_back(name);
    }
  }
  return names;
}

int count_foreign(const std::vector<uint32_t>& pids, uint32_t own) {
  const auto total = static_cast<int>(pids.size());
  const auto ours = static_cast<int>(std::count(pids.begin(), pids.end(), own));
  return std::max(0, total - std::max(1, ours));
}

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::create(const Device& device) {
  if (device.info().emulated) {
    return unsupported("the emulated device has no NVML");
  }
  static const Result<NvmlApi> api = open_nvml();
  if (!api.ok()) {
    return api.error();
  }
  NvmlDevice handle = nullptr;
  if (const int code = api->device_by_uuid(device.info().uuid.c_str(), &handle); code != kNvmlSuccess) {
    return unsupported(fmt::format("NVML knows no GPU {} (error {})", device.info().uuid, code));
  }
  return std::unique_ptr<GpuMonitor>(std::make_unique<NvmlMonitor>(*api, handle));
}

}  // namespace cudabk
