// cudabk explain: what would run for one problem or graph, and why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <set>

#include "bench/cases.h"
#include "bench/layer.h"
#include "bench/suites.h"
#include "cli/command.h"
#include "core/file.h"
#include "measure/limits.h"
#include "tuning/explain.h"
#include "tuning/family_set.h"

namespace cudabk::cli {
namespace {

constexpr size_t kMaxProblems = 64;  // more is a table for `bench --list`

struct ExplainFlags {
  std::string target, arch, json, variant = "auto";
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

// A GPU that is not here: any one of `arch`, or the one that the profile given by name was made for.
Result<DeviceInfo> absent_gpu(const std::string& arch, const std::string& profile_file) {
  CUDABK_ASSIGN(DeviceInfo info, describe_architecture(arch));
  info.name = fmt::format("any {} GPU", arch);
  if (!profile_file.empty()) {
    CUDABK_ASSIGN(const std::string text, read_file(profile_file));
    CUDABK_ASSIGN(const Profile given, parse_profile(text, profile_file, family_set(), ParseMode::kStrict));
    if (given.device.arch == arch && given.device.name != "*") {
      info.name = given.device.name;
      info.sm_count = given.device.sm_count;
      info.l2_bytes = given.device.l2_bytes;
    }
  }
  return info;
}

Result<Roofs> roofs_of(Device& device, bool no_measure) {
  if (device.info().emulated || no_measure) {
    return data_sheet_roofs(device.info().arch);
  }
  CUDABK_ASSIGN(const MachineLimits limits, machine_limits(device, &CliContext::interrupted()));
  return Roofs{limits.read_gbps, limits.gemm_tflops * 1e3, "measured on this device"};
}

Status set_variant(const std::string& text, const OpDef& op, ExplainOptions& options) {
  if (text == "all" || text == "full") {
    return invalid(fmt::format("--variant {}: one is explained at a time; `cudabk list variants` has all", text));
  }
  CUDABK_ASSIGN(Variant variant, parse_variant(text, op));
  options.forced_family = std::move(variant.family);
  options.forced_config = std::move(variant.config);
  return success();
}

Status run(CliContext& context, const ExplainFlags& flags) {
  CUDABK_ASSIGN(const OpDef* op, target_of(flags.target));
  ExplainOptions options;
  CUDABK_TRY(set_variant(flags.variant, *op, options));
  if (!flags.arch.empty()) {
    context.device_name = "host@" + flags.arch;
  }
  CUDABK_ASSIGN(Device * device, context.device());
  Profile absent_profile;
  const Profile* profile = &absent_profile;
  if (flags.arch.empty()) {
    CUDABK_ASSIGN(profile, context.profile());
  } else {
    CUDABK_ASSIGN(options.pose_as, absent_gpu(flags.arch, context.profile_file));
    CUDABK_ASSIGN(absent_profile,
                  find_profile(*options.pose_as, context.profile_file, context.profile_dir, family_set()));
  }
  const bool emulated = !options.pose_as && device->info().emulated;
  CUDABK_ASSIGN(const std::vector<CaseParams> problems, problems_of(flags, *op, emulated));
  const DeviceOptions& d = context.device_options;
  KernelCompiler compiler({d.cache_dir, d.cache_limit_bytes, d.toolkit_dir});
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
  command
      ->add_option("--arch", flags->arch,
                   "as on a GPU of this architecture (sm_90a), or on the one that --profile is for")
      ->check([](const std::string& text) {
        return text.empty() ? fmt::format("names no architecture; valid: {}", fmt::join(kArchitectures, ", ")) : "";
      });
  command->add_option("--variant", flags->variant,
                      "in place of the table's choice: FAMILY[:param=value,...] (`cudabk list variants`)");
  command->add_flag("--no-measure", flags->no_measure, "data-sheet limits instead of measured ones");
  command->add_flag("--no-compile", flags->no_compile, "leave out registers and the check for stale rules");
  command->add_flag("--no-fusion", flags->no_fusion, "without fusion");
  command->add_option("--no-fuse", flags->no_fuse, "fusion rules to switch off")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_output_option(*command, context, "--json", flags->json, "the explanation as JSON");
  add_axes(*command, *flags);
  command->footer(
      "Examples:\n"
      "  cudabk explain mulmat --type q4_K -m 4096 -k 14336 -n 16\n"
      "  cudabk explain mulmat --type q4_K -n 16 --variant mmq:tile_m=64\n"
      "  cudabk explain mulmat --type q4_K -n 16 --arch sm_90a --profile profiles/nvidia-h200-sm_90a-132.json\n"
      "  cudabk explain layer --type q4_K --tokens 1");
  set_handler(*command, context, [flags](CliContext& c) { return run(c, *flags); });
}

}  // namespace cudabk::cli
