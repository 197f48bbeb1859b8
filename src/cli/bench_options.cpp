#include "cli/bench_options.h"

#include <fmt/format.h>

#include "backend/fusion.h"
#include "bench/fusion_cases.h"
#include "bench/layer.h"
#include "bench/sweep.h"
#include "cli/checks.h"
#include "core/units.h"
#include "graph/init.h"
#include "ops/op_def.h"

namespace cudabk::cli {
namespace {

// The groups of --help; GroupedFormatter has their order.
constexpr const char *kWhich = "Which cases", *kShape = "Shape", *kTypes = "Types", *kLayout = "Layout",
                     *kOperation = "Operation", *kExecution = "Execution", *kMeasurement = "Measurement",
                     *kOutput = "Output";

// Of an axis, by its name, since names mean the same in all ops.
const char* axis_group(const std::string& name) {
  const auto starts = [&name](auto... prefix) { return (... || name.starts_with(prefix)); };
  if (starts("type", "act", "prec", "index")) {
    return kTypes;
  }
  if (starts("layout", "dims", "gap", "inplace", "odd")) {
    return kLayout;
  }
  return starts("scale", "eps", "chain", "form", "pattern") ? kOperation : kShape;
}

// One flag per axis name over all ops; an axis whose name is another option's is reached with --axis.
void add_axis_options(CLI::App& command, BenchFlags& flags) {
  std::vector<const OpDef*> targets(all_ops().begin(), all_ops().end());
  targets.push_back(&layer_target());
  targets.push_back(&fusion_target());
  for (const OpDef* op : targets) {
    for (const Axis& axis : op->axes()) {
      const std::string flag = (axis.name.size() == 1 ? "-" : "--") + axis.name;
      if (command.get_option_no_throw(flag) == nullptr) {
        const std::string name = axis.name;
        command
            .add_option_function<std::string>(
                flag, [&flags, name](const std::string& value) { flags.axes[name] = value; }, axis.help)
            ->group(axis_group(name));
      }
    }
  }
  command.add_option("--axis", flags.extra_axes, "NAME=VALUES: any axis by its name")
      ->allow_extra_args(false)
      ->group(kShape);
}

void add_case_options(CLI::App& command, BenchFlags& flags) {
  const char* group = kWhich;
  command
      .add_option("--variant", flags.variant,
                  "auto (the table's choice), all, full, FAMILY[:param=value,...], or 'FAMILY param=value ...' as "
                  "tables print it")
      ->group(group);
  command.add_option("--filter", flags.filters, "keep cases whose key matches this regular expression")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--exclude", flags.excludes, "drop cases whose key matches")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--dist", flags.distribution, "values: normal, uniform:A,B")->group(group);
  command.add_option("--seed", flags.seed, "of the random data (default 42, recorded)")
      ->group(group)
      ->check(check_seed);
  command.add_flag("--list", flags.list, "only list the cases")->group(group);
}

void add_words(CLI::App& command, const char* group, const char* name, std::string& value,
               std::vector<std::string> allowed, const char* help) {
  command.add_option(name, value, help)->check(one_of(std::move(allowed)))->group(group);
}

// What test has too.
void add_plan_options(CLI::App& command, BenchFlags& flags) {
  add_words(command, kExecution, "--launch", flags.launch, {"graph", "eager", "both"}, "graph (default), eager, both");
  add_words(command, kExecution, "--fusion", flags.fusion, {"on", "off", "both"}, "on (default), off, both");
  command.add_option("--no-fuse", flags.no_fuse, "fusion rules to switch off")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kExecution);
}

void add_mode_options(CLI::App& command, BenchFlags& flags) {
  add_words(command, kExecution, "--cache", flags.cache, {"cold", "hot", "both"},
            "cold (default): distinct weights per op; hot; both");
  command.add_flag("--shared-input", flags.shared_input, "all ops of a replay read the same activations")
      ->group(kExecution);
  const auto words = [&](const char* name, std::string& value, std::vector<std::string> allowed, const char* help) {
    add_words(command, kMeasurement, name, value, std::move(allowed), help);
  };
  words("--check", flags.check, {"once", "all", "off"},
        "against the reference: once (default: per shape and variant), all, off");
  words("--timer", flags.timer, {"auto", "cupti", "event", "wall"}, "auto (default), cupti, event, wall");
  words("--order", flags.order, {"fixed", "random", "interleave"}, "of the cases: fixed (default), random, interleave");
  words("--on-throttle", flags.on_throttle, {"retry", "mark", "fail"},
        "when the clock falls below the threshold: retry (default), mark, fail");
  command.add_option("--throttle-threshold", flags.throttle_threshold, "of the highest clock (default 75%)")
      ->group(kMeasurement);
  command.add_flag("--no-limits", flags.no_limits, "do not measure the machine's limits first")->group(kMeasurement);
  command.add_flag("--no-trace", flags.no_trace, "do not trace kernels")->group(kMeasurement);
}

void add_length_options(CLI::App& command, BenchFlags& flags) {
  const char* group = kMeasurement;
  command.add_option("--warmup", flags.warmup, "auto (default), a number of samples, or a time")->group(group);
  command
      .add_option("--precision", flags.precision,
                  "half-width of the median's interval to reach (1%; emulated device 10%)")
      ->group(group);
  command.add_option("--min-samples", flags.min_samples, "per case (20; emulated device 3)")
      ->group(group)
      ->check(whole_number(0, 1'000'000));
  command.add_option("--max-samples", flags.max_samples, "per case (2000; emulated device 50)")
      ->group(group)
      ->check(whole_number(1, 1'000'000));
  command.add_option("--min-time", flags.min_time, "per case, e.g. 200ms")->group(group);
  command.add_option("--max-time", flags.max_time, "per case (2s; emulated device 0.5s)")->group(group);
  command.add_option("--budget", flags.budget, "for the whole command, e.g. 10m")->group(group);
  command.add_option("--repeat", flags.repetitions, "measure every case this many times")
      ->group(group)
      ->check(whole_number(1, 1'000'000));
}

Result<Mode> mode_of(const std::string& word, const char* first) {
  return word == "both" ? Mode::kBoth : (word == first ? Mode::kFirst : Mode::kSecond);
}

template <class T>
Status set_from(const char* flag, Result<T> value, T& target) {
  if (!value.ok()) {
    return std::move(value).error().with_context(flag);
  }
  target = std::move(value).value();
  return success();
}

Status set_pair(const char* flag, const std::string& text, std::map<std::string, std::string>& target) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid(fmt::format("{}: '{}' is not NAME=VALUE", flag, text));
  }
  if (!target.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
    return invalid(fmt::format("{}: '{}' was given twice", flag, text.substr(0, equals)));
  }
  return success();
}

// The emulator answers whether things run and are right; its times are worth little, so they cost little.
SamplerOptions emulated_sampler() {
  SamplerOptions sampler;
  sampler.warmup.rule = Warmup::Rule::kCount;
  sampler.warmup.count = 1;
  sampler.precision = 0.1;
  sampler.min_samples = 3;
  sampler.max_samples = 50;
  sampler.max_time_s = 0.5;
  return sampler;
}

Status set_sampler(const BenchFlags& flags, SamplerOptions& sampler) {
  if (!flags.warmup.empty()) {
    CUDABK_TRY(set_from("--warmup", parse_warmup(flags.warmup), sampler.warmup));
  }
  if (!flags.precision.empty()) {
    CUDABK_TRY(set_from("--precision", parse_fraction(flags.precision, 1.0), sampler.precision));
  }
  CUDABK_TRY(
      set_from("--throttle-threshold", parse_fraction(flags.throttle_threshold, 1.0), sampler.throttle_threshold));
  CUDABK_TRY(set_from("--on-throttle", parse_throttle_action(flags.on_throttle), sampler.on_throttle));
  if (!flags.min_time.empty()) {
    CUDABK_TRY(set_from("--min-time", parse_duration_s(flags.min_time), sampler.min_time_s));
  }
  if (!flags.max_time.empty()) {
    CUDABK_TRY(set_from("--max-time", parse_duration_s(flags.max_time), sampler.max_time_s));
  }
  if (flags.min_samples >= 0) {
    sampler.min_samples = flags.min_samples;
  }
  if (flags.max_samples >= 0) {
    sampler.max_samples = flags.max_samples;
    sampler.min_samples = std::min(sampler.min_samples, sampler.max_samples);
  }
  return success();
}

void add_common_options(CLI::App& command, CliContext& context, BenchFlags& flags) {
  add_output_options(command, context, flags.outputs);
  command.add_option("--tag", flags.tags, "NAME=VALUE kept in the result")->allow_extra_args(false)->group(kOutput);
  add_case_options(command, flags);
  add_plan_options(command, flags);
}

}  // namespace

void add_bench_options(CLI::App& command, CliContext& context, BenchFlags& flags) {
  add_common_options(command, context, flags);
  command.add_option("--shapes", flags.shapes, "the matrices of a real model (`cudabk list shapes`)")->group(kWhich);
  command.add_option("--suite", flags.suite, "smoke, decode, prefill, all, or @FILE.jsonl")->group(kWhich);
  add_mode_options(command, flags);
  add_length_options(command, flags);
  add_axis_options(command, flags);  // last: other options come first where names clash
}

void add_test_options(CLI::App& command, CliContext& context, BenchFlags& flags) {
  add_common_options(command, context, flags);
  add_axis_options(command, flags);
}

Result<Selection> to_selection(const BenchFlags& flags) {
  Selection selection;
  selection.axes = flags.axes;
  for (const std::string& axis : flags.extra_axes) {
    CUDABK_TRY(set_pair("--axis", axis, selection.axes));
  }
  selection.shapes = flags.shapes;
  selection.variant = flags.variant;
  selection.filters = flags.filters;
  selection.excludes = flags.excludes;
  CUDABK_ASSIGN(selection.launch, mode_of(flags.launch, "graph"));
  CUDABK_ASSIGN(selection.fusion, mode_of(flags.fusion, "on"));
  CUDABK_ASSIGN(selection.cache, mode_of(flags.cache, "cold"));
  return selection;
}

Result<RunOptions> to_run_options(const BenchFlags& flags, const CliContext& context, const DeviceInfo& device) {
  RunOptions options;
  if (device.emulated) {
    options.sampler = emulated_sampler();
  }
  options.seed = flags.seed;
  options.distribution = flags.distribution;
  options.check = flags.check == "once" ? CheckMode::kOnce : (flags.check == "all" ? CheckMode::kAll : CheckMode::kOff);
  options.timer = flags.timer == "auto"    ? TimerChoice::kAuto
                  : flags.timer == "cupti" ? TimerChoice::kCupti
                  : flags.timer == "event" ? TimerChoice::kEvent
                                           : TimerChoice::kWall;
  options.order = flags.order == "fixed"    ? CaseOrder::kFixed
                  : flags.order == "random" ? CaseOrder::kRandom
                                            : CaseOrder::kInterleave;
  options.repetitions = flags.repetitions > 0 ? flags.repetitions : (options.order == CaseOrder::kInterleave ? 3 : 1);
  options.shared_input = flags.shared_input;
  options.trace = !flags.no_trace;
  options.measure_limits = !flags.no_limits;
  for (const std::string& rule : flags.no_fuse) {
    CUDABK_TRY(check_fusion_name(rule));
    options.no_fuse.insert(rule);
  }
  if (const Result<Distribution> parsed = parse_distribution(flags.distribution); !parsed.ok()) {
    return Error(parsed.error()).with_context("--dist");
  }
  if (!flags.budget.empty()) {
    CUDABK_TRY(set_from("--budget", parse_budget_s(flags.budget), options.budget_s));
  }
  CUDABK_TRY(set_sampler(flags, options.sampler));
  for (const std::string& tag : flags.tags) {
    CUDABK_TRY(set_pair("--tag", tag, options.tags));
  }
  options.arguments = context.arguments;
  options.interrupted = &CliContext::interrupted();
  options.sampler.interrupted = options.interrupted;
  return options;
}

}  // namespace cudabk::cli
