// cudabk bench: measure one family of cases, or a named set.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "bench/google_front.h"
#include "bench/layer.h"
#include "bench/report_row.h"
#include "bench/suites.h"
#include "cli/bench_options.h"
#include "core/units.h"
#include "device/label.h"
#include "measure/google_benchmark.h"
#include "tuning/stale.h"

namespace cudabk::cli {
namespace {

// Prints the table row by row, and progress with the time left.
class TableObserver final : public RunObserver {
 public:
  TableObserver(CliContext& context, const std::vector<BenchCase>& cases, bool traced)
      : context_(context), layout_(cases, traced), table_(layout_.columns()) {
    breakdown_ = std::all_of(cases.begin(), cases.end(), [](const BenchCase& c) { return c.op == &layer_target(); });
  }

  void limits_known(const RunEnvironment& environment, const RunLimits& limits) override {
    limits_ = limits;
    const DeviceInfo& device = environment.device;
    context_.print(fmt::format("{}, {} SMs, profile {}\n", device_label(device.name, device.arch), device.sm_count,
                               environment.profile_source));
    context_.print(limits_line(limits));
    if (!layout_.common().empty()) {
      context_.print(layout_.common() + "\n");
    }
    if (device.emulated) {
      context_.print("times are the emulator's; they say nothing about a GPU\n");
    }
    context_.print("\n" + table_.header());
  }

  void case_started(size_t index, size_t total, const BenchCase& c, double left_s) override {
    const std::string left = left_s < 0 ? "" : fmt::format(", {} left", format_left_s(left_s));
    context_.show_progress(fmt::format("[{}/{}{}] {}", index + 1, total, left, c.key()));
  }

  void case_done(const CaseResult& result) override {
    std::string line = table_.row(layout_.cells(result, limits_));
    if (context_.color && !context_.machine_stdout && result.status != CaseStatus::kOk) {
      line = "\x1b[31m" + line.substr(0, line.size() - 1) + "\x1b[0m\n";
    }
    context_.print(line);
    if (breakdown_ || context_.verbose) {
      context_.print(breakdown_text(result));
    }
  }

 private:
  static std::string limits_line(const RunLimits& limits) {
    const auto rate = [](const std::optional<double>& v, double scale, const char* unit) {
      return v ? format_figure(*v * scale) + " " + unit : std::string("not measured");
    };
    if (!limits.read_bytes_per_ns && !limits.gemm_operations_per_ns) {
      return limits.note.empty() ? "" : "limits: " + limits.note + "\n";
    }
    return fmt::format("limits: read {}, copy {}, gemm {} {}\n", rate(limits.read_bytes_per_ns, 1, "GB/s"),
                       rate(limits.copy_bytes_per_ns, 1, "GB/s"), rate(limits.gemm_operations_per_ns, 1e-3, "TFLOP/s"),
                       limits.gemm.empty() ? "" : "(" + limits.gemm + ")");
  }

  CliContext& context_;
  RowLayout layout_;
  TextTable table_;
  bool breakdown_ = false;  // after every row: for runs of layers
  RunLimits limits_;
};

Result<std::vector<BenchCase>> cases_of(const BenchFlags& flags, const DeviceInfo& device, const Profile* profile) {
  CUDABK_ASSIGN(const Selection selection, to_selection(flags));
  if (!flags.suite.empty()) {
    if (!flags.target.empty()) {
      return invalid(fmt::format("'{}' and --suite exclude each other: a suite names its ops; narrow it with --filter",
                                 flags.target));
    }
    return suite_cases(flags.suite, selection, device, profile);
  }
  if (flags.target.empty()) {
    return invalid("bench needs an op, 'layer', or --suite; ops: " + op_names());
  }
  if (flags.target == layer_target().name()) {
    return select_cases(layer_target(), selection, device, profile);
  }
  CUDABK_ASSIGN(const OpDef* op, find_op(flags.target));
  return select_cases(*op, selection, device, profile);
}

void print_list(CliContext& context, const std::vector<BenchCase>& cases) {
  for (const BenchCase& c : cases) {
    context.print(c.key() + (c.note.empty() ? "" : "  # " + c.note) + "\n");
  }
}

void note_rows(CliContext& context, const RunResult& run) {
  constexpr size_t kMaxLines = 5;
  size_t usable = 0, failed = 0;
  for (const CaseResult& result : run.cases) {
    if (result.status == CaseStatus::kOk) {
      ++usable;
    } else if (result.status != CaseStatus::kUnsupported) {
      const ErrorKind kind = *error_kind_of(result.status);
      if (++failed <= kMaxLines) {
        context.note_error({kind, fmt::format("{}: {}: {}", result.key, status_name(result.status), result.message)});
      }
      context.note(kind);
    }
  }
  if (failed > kMaxLines) {
    context.notice(fmt::format("... and {} more", failed - kMaxLines));
  }
  if (!run.complete) {
    context.notice("incomplete: " + run.incomplete_reason);
  }
  if (usable == 0 && context.exit_status() == 0 && !CliContext::interrupted()) {
    context.note_error(run.cases.empty() || run.cases.front().status != CaseStatus::kUnsupported
                           ? Error{ErrorKind::kNothing, "no case was measured"}
                           : unsupported("no case can run here; first reason: " + run.cases.front().message));
  }
}

// One line about rules that were measured with other kernels: their variants were timed, but may no longer be the best.
void warn_of_stale_rules(CliContext& context, Device& device, const Profile& profile,
                         const std::vector<BenchCase>& cases) {
  if (CliContext::interrupted()) {
    return;
  }
  const std::vector<std::string> stale = stale_rules(device, profile, cases);
  if (!stale.empty()) {
    context.notice(fmt::format(
        "warning: {}: {} of the rules used {} stale: the code of {} changed since {} measured; `cudabk tune` measures "
        "again (first: {})",
        profile.source, stale.size(), stale.size() == 1 ? "is" : "are",
        stale.size() == 1 ? "its variant" : "their variants", stale.size() == 1 ? "it was" : "they were",
        stale.front()));
  }
}

Status run_bench(CliContext& context, const BenchFlags& flags) {
  CUDABK_TRY(check_outputs(flags.outputs));
  CUDABK_ASSIGN(Device * device, context.device());
  CUDABK_ASSIGN(RunOptions options, to_run_options(flags, context, device->info()));
  CUDABK_TRY(cases_of(flags, device->info(), nullptr));  // bad input is told before anything else
  CUDABK_ASSIGN(const Profile* profile, context.profile());
  CUDABK_ASSIGN(const std::vector<BenchCase> cases, cases_of(flags, device->info(), profile));
  if (flags.list) {
    print_list(context, cases);
    return success();
  }
  if (context.device_name != "auto") {
    options.base_command = {"--device", context.device_name};
  }
  options.checkpoint = [&](const RunResult& partial) { write_checkpoint(context, flags.outputs, partial); };
  TableObserver observer(context, cases, options.trace && !device->info().emulated);
  CUDABK_ASSIGN(const RunResult run, run_cases(*device, *profile, cases, options, observer));
  context.show_progress("");
  warn_of_stale_rules(context, *device, *profile, cases);
  note_rows(context, run);
  if (CliContext::interrupted()) {
    context.note(ErrorKind::kInterrupted);
  }
  return write_outputs(context, flags.outputs, run);
}

Status run_google(CliContext& context, const BenchFlags& flags, const std::vector<std::string>& google_flags) {
  CUDABK_ASSIGN(Device * device, context.device());
  CUDABK_ASSIGN(const RunOptions options, to_run_options(flags, context, device->info()));
  CUDABK_TRY(cases_of(flags, device->info(), nullptr));  // bad input is told before anything else
  CUDABK_ASSIGN(const Profile* profile, context.profile());
  CUDABK_ASSIGN(const std::vector<BenchCase> cases, cases_of(flags, device->info(), profile));
  warn_of_stale_rules(context, *device, *profile, cases);
  return run_google_benchmark_cases(*device, *profile, cases, options, google_flags, std::cout, std::cerr);
}

// What CLI11 did not know: flags of Google Benchmark choose its front end, anything else is an error.
std::vector<std::string> google_flags_of(const CLI::App& command) {
  std::vector<std::string> flags = command.remaining();
  for (const std::string& flag : flags) {
    if (!is_benchmark_flag(flag)) {
      throw CLI::ExtrasError(std::vector<std::string>{flag});  // main.cpp describes it
    }
  }
  return flags;
}

}  // namespace

void add_bench_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("bench", "measure an op, a layer or a suite, each case verified first");
  const auto flags = std::make_shared<BenchFlags>();
  command->add_option("target", flags->target, "mulmat, another op (`cudabk list ops`), or layer");
  add_bench_options(*command, context, *flags);
  command->allow_extras();  // flags of Google Benchmark
  command->footer(
      "Sweeps: a,b,c | a:b:step | a:b*factor, e.g. -n 1:64*2. Times are medians; GB/s counts each tensor once.\n"
      "Which axes an op has: `cudabk list ops`.\n"
      "Examples:\n"
      "  cudabk bench mulmat --type q4_K\n"
      "  cudabk bench mulmat --type q4_K,q6_K -m 4096 -k 14336 -n 1:64*2 --json out.json\n"
      "  cudabk bench mulmat --type q4_K --shapes llama-3.1-8b -n 1,512 --variant all\n"
      "  cudabk bench layer --type q4_K --tokens 1 --launch both\n"
      "  cudabk bench --suite smoke --csv -\n"
      "  cudabk bench mulmat --benchmark_filter=n:1/ --benchmark_format=json");
  set_handler(*command, context, [command, flags](CliContext& ctx) {
    const std::vector<std::string> google = google_flags_of(*command);
    return google.empty() ? run_bench(ctx, *flags) : run_google(ctx, *flags, google);
  });
}

}  // namespace cudabk::cli
