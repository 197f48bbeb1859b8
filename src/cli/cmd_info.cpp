// cudabk info: devices, tools and limits of this machine, and the profile in use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench/environment.h"
#include "bench/kernel_sweep.h"
#include "bench/report_row.h"
#include "cli/command.h"
#include "core/units.h"
#include "measure/trace.h"

namespace cudabk::cli {
namespace {

struct Fact {
  std::string group, name, value;
};

struct Report {
  std::vector<Fact> facts;
  std::vector<std::string> unfit;  // reasons why this machine is unfit to measure
};

void add_device(Report& report, Device& device) {
  const DeviceInfo& info = device.info();
  report.facts.push_back({"device", "id", info.id});
  report.facts.push_back({"device", "name", info.name});
  report.facts.push_back({"device", "architecture", info.arch});
  report.facts.push_back({"device", "SMs", fmt::format("{}", info.sm_count)});
  report.facts.push_back({"device", "L2", format_bytes(static_cast<double>(info.l2_bytes))});
  if (const auto memory = device.memory_free_total(); memory.ok()) {
    report.facts.push_back({"device", "memory",
                            fmt::format("{} free of {}", format_bytes(static_cast<double>(memory->first)),
                                        format_bytes(static_cast<double>(memory->second)))});
  }
  report.facts.push_back({"device", "shared memory", fmt::format("{} bytes per block", info.max_shared_bytes)});
  if (!info.driver_text.empty()) {
    report.facts.push_back({"device", "driver", info.driver_text});
    report.facts.push_back({"device", "uuid", info.uuid});
  }
  if (info.emulated) {
    report.unfit.emplace_back("the device is emulated");
  }
}

void add_gpus(Report& report) {
  const Result<int> gpus = cuda_device_count();
  report.facts.push_back(
      {"machine", "CUDA devices", gpus.ok() ? fmt::format("{}", *gpus) : "none: " + gpus.error().message});
}

void add_tools(Report& report, CliContext& context, Device& device) {
  const DeviceOptions& options = context.device_options;
  KernelCompiler compiler({options.cache_dir, options.cache_limit_bytes, options.toolkit_dir});
  const Result<std::string> nvrtc = compiler.compiler_version();
  report.facts.push_back({"tools", "NVRTC", nvrtc.ok() ? *nvrtc : "no: " + nvrtc.error().message});
  report.facts.push_back({"tools", "kernel cache", options.cache_dir.empty() ? "off" : options.cache_dir});
  const Status gemm = device.gemm_available();
  report.facts.push_back({"tools", "GEMM library", gemm.ok() ? "yes" : "no: " + gemm.error().message});
  const auto tracer = KernelTracer::create(device);
  report.facts.push_back({"tools", "CUPTI", tracer.ok() ? "kernels can be traced" : "no: " + tracer.error().message});
  const auto monitor = GpuMonitor::create(device);
  if (!monitor.ok()) {
    report.facts.push_back({"tools", "NVML", "no: " + monitor.error().message});
  } else {
    const GpuState state = (*monitor)->read();
    std::map<std::string, std::string> facts;
    add_gpu_facts(state, facts);
    for (const auto& [name, value] : facts) {
      report.facts.push_back({"state", name, value});
    }
    if (state.foreign_processes.value_or(0) > 0) {
      report.unfit.push_back(fmt::format("{} other processes use the GPU", *state.foreign_processes));
    }
    for (const std::string& reason : state.throttle_reasons) {
      report.unfit.push_back("throttled: " + reason);
    }
  }
  if (!device.info().emulated && !nvrtc.ok()) {
    report.unfit.push_back("NVRTC: " + nvrtc.error().message);
  }
}

Status add_profile(Report& report, CliContext& context) {
  CUDABK_ASSIGN(const Profile* profile, context.profile());
  report.facts.push_back({"profile", "in use", profile->source});
  report.facts.push_back({"profile", "why", profile->why});
  for (const std::string& warning : profile->warnings) {
    report.facts.push_back({"profile", "warning", warning});
  }
  report.facts.push_back({"profile", "folder", context.profile_dir.empty() ? "none" : context.profile_dir});
  return success();
}

void add_limits(Report& report, Device& device) {
  const RunLimits limits = measure_run_limits(device, &CliContext::interrupted());
  const auto add = [&](const char* name, const std::optional<double>& value, double scale, const char* unit) {
    if (value) {
      report.facts.push_back({"limits", name, format_figure(*value * scale) + " " + unit});
    }
  };
  add("read", limits.read_bytes_per_ns, 1, "GB/s");
  add("copy", limits.copy_bytes_per_ns, 1, "GB/s");
  add("gemm", limits.gemm_operations_per_ns, 1e-3, ("TFLOP/s " + limits.gemm).c_str());
  if (!limits.note.empty()) {
    report.facts.push_back({"limits", "note", limits.note});
  }
}

std::string as_text(const Report& report) {
  std::string text, group;
  for (const Fact& fact : report.facts) {
    if (fact.group != group) {
      text += fact.group + "\n";
      group = fact.group;
    }
    text += fmt::format("  {:<20} {}\n", fact.name, fact.value);
  }
  return text;
}

std::string as_json(const Report& report) {
  nlohmann::ordered_json json;
  json["schema"] = "cudabk-info/1";
  for (const Fact& fact : report.facts) {
    json[fact.group][fact.name] = fact.value;
  }
  json["unfit"] = report.unfit;
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

struct InfoFlags {
  bool check = false, limits = false;
  std::string json;
};

Status run_info(CliContext& context, const InfoFlags& flags) {
  CUDABK_ASSIGN(Device * device, context.device());
  Report report;
  report.facts.push_back({"machine", "cudabk", CUDABK_VERSION});
  add_gpus(report);
  add_device(report, *device);
  add_tools(report, context, *device);
  CUDABK_TRY(add_profile(report, context));
  if (flags.limits) {
    add_limits(report, *device);
  }
  if (flags.json.empty()) {
    context.print(as_text(report));
  } else {
    CUDABK_TRY(context.write_document(flags.json, as_json(report)));
  }
  if (flags.check && !report.unfit.empty()) {
    return unfit("unfit to measure: " + fmt::format("{}", fmt::join(report.unfit, "; ")));
  }
  return success();
}

}  // namespace

void add_info_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("info", "device, limits, driver, tools, profile in use and why");
  const auto flags = std::make_shared<InfoFlags>();
  command->add_flag("--check", flags->check, "exit 6 where the machine is unfit to measure");
  command->add_flag("--limits", flags->limits, "measure read and copy bandwidth and GEMM rate");
  add_output_option(*command, context, "--json", flags->json, "as a JSON document");
  command->footer("Examples:\n  cudabk info\n  cudabk info --limits --json -\n  cudabk info --check --device cuda:0");
  set_handler(*command, context, [flags](CliContext& ctx) { return run_info(ctx, *flags); });
}

}  // namespace cudabk::cli
