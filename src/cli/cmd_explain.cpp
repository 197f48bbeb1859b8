// cudabk explain: what would run for one problem or graph, and why.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>

#include "bench/cases.h"
#include "bench/layer.h"
#include "bench/suites.h"
#include "cli/command.h"
#include "measure/limits.h"
#include "tuning/explain.h"

namespace cudabk::cli {
namespace {

constexpr size_t kMaxProblems = 64;  // more is a table for `bench --list`

struct ExplainFlags {
  std::string target, arch, json;
  std::map<std::string, std::string> axes;
  std::vector<std::string> extra_axes, no_fuse;
  bool no_measure = false, no_compile = false, no_fusion = false;
};

void add_axes(CLI::App& command, ExplainFlags& flags) {
  std::vector<const OpDef*> targets(all_ops().begin(), all_ops().end());
  targets.push_back(&layer_target());
  for (const OpDef* op : targets) {
    for (const Axis& axis : op->axes()) {
      const std::string flag = (axis.name.size() == 1 ? "-" : "--") + axis.name;
      if (command.get_option_no_throw(flag) == nullptr) {
        const auto set = [&flags, name = axis.name](const std::string& value) { flags.axes[name] = value; };
        command.add_option_function<std::string>(flag, set, axis.help)->group("Problem");
      }
    }
  }
  command.add_option("--axis", flags.extra_axes, "NAME=VALUE: any axis by its name")
      ->allow_extra_args(false)
      ->group("Problem");
}

Result<const OpDef*> target_of(const std::string& name) {
  return name == layer_target().name() ? Result<const OpDef*>(&layer_target()) : find_op(name);
}

// One problem unless several values were given: an axis left out takes its first value.
Result<std::vector<CaseParams>> problems_of(const ExplainFlags& flags, const OpDef& op, bool emulated) {
  std::map<std::string, std::string> given = flags.axes;
  for (const std::string& text : flags.extra_axes) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid(fmt::format("--axis: '{}' is not NAME=VALUE", text));
    }
    given[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const Axis& axis : op.axes()) {
    if (!axis.gpu_values.empty()) {
      given.emplace(axis.name, axis.gpu_values.front());
    }
  }
  CUDABK_ASSIGN(std::vector<CaseParams> problems, expand_axes(op.name(), op.axes(), given, emulated));
  if (problems.size() > kMaxProblems) {
    return invalid(fmt::format("{} problems at once; at most {}", problems.size(), kMaxProblems));
  }
  return problems;
}

Result<Roofs> roofs_of(Device& device, bool no_measure) {
  if (device.info().emulated || no_measure) {
    return data_sheet_roofs(device.info().arch);
  }
  CUDABK_ASSIGN(const MachineLimits limits, machine_limits(device, &CliContext::interrupted()));
  return Roofs{limits.read_gbps, limits.gemm_tflops * 1e3, "measured on this device"};
}

Status run(CliContext& context, const ExplainFlags& flags) {
  CUDABK_ASSIGN(const OpDef* op, target_of(flags.target));
  if (!flags.arch.empty()) {
    context.device_name = "host@" + flags.arch;
  }
  CUDABK_ASSIGN(Device * device, context.device());
  CUDABK_ASSIGN(const Profile* profile, context.profile());
  CUDABK_ASSIGN(const std::vector<CaseParams> problems, problems_of(flags, *op, device->info().emulated));
  const DeviceOptions& d = context.device_options;
  KernelCompiler compiler({d.cache_dir, d.cache_limit_bytes, d.toolkit_dir});
  ExplainOptions options;
  CUDABK_ASSIGN(options.roofs, roofs_of(*device, flags.no_measure));
  options.fusion = !flags.no_fusion;
  options.no_fuse = {flags.no_fuse.begin(), flags.no_fuse.end()};
  options.compiler = flags.no_compile ? nullptr : &compiler;
  options.check_stale = !flags.no_compile;
  std::string json;
  for (size_t i = 0; i < problems.size(); ++i) {
    CUDABK_ASSIGN(const Explanation e, explain(*device, *profile, *op, problems[i], options));
    context.print((i > 0 ? "\n" : "") + explanation_text(e));
    json += (i > 0 ? ",\n" : "") + explanation_json(e);
  }
  if (!flags.json.empty()) {
    return context.write_document(flags.json, problems.size() == 1 ? json : "[\n" + json + "]\n");
  }
  return success();
}

}  // namespace

void add_explain_command(CLI::App& app, CliContext& context) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand("explain", "what would run for one problem or graph, and why");
  command->add_option("target", flags->target, "an op or layer; ops: " + op_names())->required();
  command->add_option("--arch", flags->arch, "as on a GPU of this architecture (sm_90a), without one");
  command->add_flag("--no-measure", flags->no_measure, "data-sheet limits instead of measured ones");
  command->add_flag("--no-compile", flags->no_compile, "leave out registers and the check for stale rules");
  command->add_flag("--no-fusion", flags->no_fusion, "without fusion");
  command->add_option("--no-fuse", flags->no_fuse, "fusion rules to switch off")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_output_option(*command, context, "--json", flags->json, "the explanation as JSON");
  add_axes(*command, *flags);
  set_handler(*command, context, [flags](CliContext& c) { return run(c, *flags); });
}

}  // namespace cudabk::cli
