// cudabk test: every op, type, variant and fusion against the reference.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/table.h"
#include "bench/test_run.h"
#include "cli/bench_options.h"
#include "core/units.h"
#include "device/label.h"

namespace cudabk::cli {
namespace {

struct Counts {
  size_t passed = 0, failed = 0, skipped = 0;
  int64_t elements = 0;
  double worst_nmse = 0;  // of the bound
};

// Prints failures as they come and a summary per op at the end.
class TestObserver final : public RunObserver {
 public:
  explicit TestObserver(CliContext& context) : context_(context) {}

  void limits_known(const RunEnvironment& environment, const RunLimits&) override {
    context_.print(fmt::format("{}, profile {}\n", device_label(environment.device.name, environment.device.arch),
                               environment.profile_source));
  }
  void case_started(size_t index, size_t total, const BenchCase& c, double left_s) override {
    const std::string left = left_s < 0 ? "" : fmt::format(", {} left", format_left_s(left_s));
    context_.show_progress(fmt::format("[{}/{}{}] {}", index + 1, total, left, c.key()));
  }
  void case_done(const CaseResult& row) override {
    Counts& counts = counts_[row.target];
    if (row.status == CaseStatus::kOk) {
      ++counts.passed;
      counts.elements += row.check.elements;
      if (row.check.tolerance > 0) {
        counts.worst_nmse = std::max(counts.worst_nmse, row.check.nmse / row.check.tolerance);
      }
      if (context_.verbose) {
        context_.print(
            fmt::format("ok    {}  NMSE {:.2g} (bound {:.2g})\n", row.key, row.check.nmse, row.check.tolerance));
      }
    } else if (row.status == CaseStatus::kUnsupported) {
      ++counts.skipped;
      if (skip_reason_.empty() || (row.variant == "auto" && !skipped_choice_)) {
        skip_reason_ = row.message;
        skipped_choice_ = row.variant == "auto";
      }
      if (context_.verbose) {
        context_.print(fmt::format("skip  {}  {}\n", row.key, row.message));
      }
    } else {
      ++counts.failed;
      context_.print(fmt::format("FAIL  {}\n      {}\n      {}\n", row.key, row.message, row.command));
    }
  }

  std::string summary() const {
    TextTable table({{"op", false, 10},
                     {"passed", true, 6},
                     {"failed", true, 6},
                     {"skipped", true, 7},
                     {"elements", true, 10},
                     {"worst NMSE / bound", true, 18}});
    std::string text = table.header();
    for (const auto& [op, c] : counts_) {
      text += table.row({op, fmt::format("{}", c.passed), fmt::format("{}", c.failed), fmt::format("{}", c.skipped),
                         fmt::format("{}", c.elements), fmt::format("{:.2g}", c.worst_nmse)});
    }
    if (const size_t skipped = total().skipped; skipped > 0) {
      text += fmt::format("\nskipped {}, for example: {}{}\n", skipped, skip_reason_,
                          context_.verbose ? "" : " (-v: all reasons)");
    }
    return text;
  }
  Counts total() const {
    Counts sum;
    for (const auto& entry : counts_) {
      sum.passed += entry.second.passed;
      sum.failed += entry.second.failed;
      sum.skipped += entry.second.skipped;
    }
    return sum;
  }

 private:
  CliContext& context_;
  std::map<std::string, Counts> counts_;
  std::string skip_reason_;      // of one skipped case, of the table's own choice where there is one
  bool skipped_choice_ = false;  // it is of the table's own choice
};

Result<std::vector<BenchCase>> selected(const BenchFlags& flags, const DeviceInfo& device, const Profile* profile) {
  CUDABK_ASSIGN(const Selection selection, to_selection(flags));
  std::vector<const OpDef*> targets = test_targets();
  if (!flags.target.empty()) {
    CUDABK_ASSIGN(const OpDef* target, find_test_target(flags.target));
    targets = {target};
  }
  return test_cases(targets, selection, device, profile);
}

TestOptions to_test_options(const BenchFlags& flags, const CliContext& context, const RunOptions& run) {
  TestOptions options;
  options.seed = flags.seed;
  options.distribution = flags.distribution;
  options.no_fuse = run.no_fuse;
  options.tags = run.tags;
  options.arguments = run.arguments;
  options.interrupted = run.interrupted;
  if (context.device_name != "auto") {
    options.base_command = {"--device", context.device_name};
  }
  return options;
}

// The first failed row decides nothing alone: every kind that occurred is noted.
void note_rows(CliContext& context, const RunResult& run, const Counts& total) {
  std::map<CaseStatus, size_t> seen;
  const CaseResult* first = nullptr;
  for (const CaseResult& row : run.cases) {
    if (row.status != CaseStatus::kOk && row.status != CaseStatus::kUnsupported) {
      first = first == nullptr ? &row : first;
      ++seen[row.status];
    }
  }
  for (const auto& entry : seen) {
    context.note(*error_kind_of(entry.first));
  }
  if (first != nullptr) {
    context.note_error({*error_kind_of(first->status), fmt::format("{} of {} cases failed; the first: {}", total.failed,
                                                                   run.cases.size(), first->key)});
  } else if (run.complete && total.passed == 0) {
    context.note_error({ErrorKind::kNothing, fmt::format("all {} cases were skipped; first reason: {}",
                                                         run.cases.size(), run.cases.front().message)});
  }
}

Status run_test(CliContext& context, const BenchFlags& flags, const std::string& dump_dir) {
  CUDABK_TRY(check_outputs(flags.outputs));
  CUDABK_ASSIGN(Device * device, context.device());
  CUDABK_ASSIGN(const RunOptions run_options, to_run_options(flags, context, device->info()));
  CUDABK_TRY(selected(flags, device->info(), nullptr));  // bad input is told before anything else
  CUDABK_ASSIGN(const Profile* profile, context.profile());
  CUDABK_ASSIGN(const std::vector<BenchCase> cases, selected(flags, device->info(), profile));
  if (flags.list) {
    for (const BenchCase& c : cases) {
      context.print(c.key() + "\n");
    }
    return success();
  }
  TestOptions options = to_test_options(flags, context, run_options);
  options.dump_dir = dump_dir;
  context.print(fmt::format("{} cases, seed {}\n", cases.size(), options.seed));
  TestObserver observer(context);
  CUDABK_ASSIGN(const RunResult run, run_tests(*device, *profile, cases, options, observer));
  context.show_progress("");
  context.print("\n" + observer.summary());
  note_rows(context, run, observer.total());
  if (!run.complete) {
    context.notice(run.incomplete_reason);
    context.note(ErrorKind::kInterrupted);
  }
  return write_outputs(context, flags.outputs, run);
}

}  // namespace

void add_test_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("test", "compare every op, type, variant and fusion with the reference");
  const auto flags = std::make_shared<BenchFlags>();
  const auto dump_dir = std::make_shared<std::string>();
  flags->variant = "all";
  command->add_option("target", flags->target, "one op, layer or fusion; all when left out");
  command->add_option("--dump-failing", *dump_dir, "folder for inputs and results of failing cases")->group("Output");
  add_test_options(*command, context, *flags);
  command->footer(
      "Cases are those of the ops; axis options keep the cases with these values. Memory is poisoned and guarded.\n"
      "Examples:\n"
      "  cudabk test\n"
      "  cudabk test mulmat --type q4_K -n 1,8\n"
      "  cudabk test mulmat --variant mmq --seed 7 --shuffle-threads 3\n"
      "  cudabk test fusion --junit test.xml");
  set_handler(*command, context, [flags, dump_dir](CliContext& ctx) { return run_test(ctx, *flags, *dump_dir); });
}

}  // namespace cudabk::cli
