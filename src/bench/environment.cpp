#include "bench/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "measure/limits.h"

namespace cudabk {

RunEnvironment describe_environment(Device& device, const Profile& profile, const RunOptions& options) {
  RunEnvironment environment;
  environment.tool_version = CUDABK_VERSION;
  environment.device = device.info();
  if (const int version = device.info().driver_version; version > 0) {
    environment.facts["driver_api"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  }
  environment.toolkit = CUDABK_TOOLKIT;
  environment.profile_source = profile.source;
  environment.profile_why = profile.why;
  environment.profile_warnings = profile.warnings;
  environment.tags = options.tags;
  environment.arguments = options.arguments;
  if (const auto memory = device.memory_free_total(); memory.ok()) {
    environment.facts["memory_free_bytes"] = fmt::format("{}", memory->first);
  }
  environment.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return environment;
}

RunLimits measure_run_limits(Device& device, const std::atomic<bool>* interrupted) {
  RunLimits limits;
  if (device.info().emulated) {
    limits.note = "none for the emulated device";
    return limits;
  }
  const Result<MachineLimits> measured = machine_limits(device, interrupted);
  if (!measured.ok()) {
    limits.note = measured.error().message;
    return limits;
  }
  limits.read_bytes_per_ns = measured->read_gbps;
  limits.copy_bytes_per_ns = measured->copy_gbps;
  limits.note = measured->gemm_reason;
  if (measured->gemm_tflops > 0) {
    limits.gemm_operations_per_ns = measured->gemm_tflops * 1e3;
    limits.gemm = "bf16 " + measured->gemm_shape;
  }
  return limits;
}

void add_gpu_facts(const GpuState& state, std::map<std::string, std::string>& facts) {
  const auto add = [&](const char* name, const auto& value) {
    if (value) {
      facts[name] = fmt::format("{}", *value);
    }
  };
  add("sm_clock_mhz", state.sm_clock_mhz);
  add("max_sm_clock_mhz", state.max_sm_clock_mhz);
  add("memory_clock_mhz", state.memory_clock_mhz);
  add("power_w", state.power_w);
  add("power_limit_w", state.power_limit_w);
  add("temperature_c", state.temperature_c);
  add("utilization_percent", state.utilization_percent);
  add("foreign_processes", state.foreign_processes);
  if (!state.throttle_reasons.empty()) {
    facts["throttle_reasons"] = fmt::format("{}", fmt::join(state.throttle_reasons, ", "));
  }
}

}  // namespace cudabk
