// cudabk gate: pass or fail for CI.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/checks.h"
#include "cli/gate_options.h"
#include "cli/outputs.h"
#include "core/file.h"
#include "results/confirm.h"
#include "results/measure_again.h"
#include "results/render.h"

namespace cudabk::cli {
namespace {

namespace fs = std::filesystem;

struct GateFlags {
  CompareFlags compare;
  std::string baseline, candidate;
  std::string old_binary;
  bool control = false, github = false;
  int rounds = 5, confirm = 2;
  std::string on_inconclusive = "fail", on_missing = "fail";
  std::vector<std::string> require_rows;
  std::string verdict = "verdict.json", keep;
  std::vector<std::string> bench_arguments;  // after --
};

// A folder for what is measured: the user's, or one that goes away.
class WorkFolder {
 public:
  static Result<std::unique_ptr<WorkFolder>> create(const std::string& keep) {
    std::error_code ec;
    std::string path = keep;
    if (keep.empty()) {
      path = (fs::temp_directory_path(ec) / "cudabk-gate-XXXXXX").string();
      if (mkdtemp(path.data()) == nullptr) {
        return invalid("cannot make a temporary folder " + path);
      }
    } else if (!fs::create_directories(path, ec) && ec) {
      return invalid(fmt::format("--keep: cannot make {}: {}", path, ec.message()));
    }
    return std::unique_ptr<WorkFolder>(new WorkFolder(fs::absolute(path, ec), keep.empty()));
  }
  ~WorkFolder() {
    std::error_code ec;
    if (temporary_) {
      fs::remove_all(path_, ec);
    }
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  WorkFolder(fs::path path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  fs::path path_;
  bool temporary_;
};

Result<GateOptions> to_gate_options(const GateFlags& flags) {
  GateOptions options;
  CUDABK_ASSIGN(options.compare, to_compare_options(flags.compare));
  options.fail_inconclusive = flags.on_inconclusive == "fail";
  options.on_missing = flags.on_missing == "fail"        ? OnMissing::kFail
                       : flags.on_missing == "allow-new" ? OnMissing::kAllowNew
                                                         : OnMissing::kPass;
  CUDABK_TRY(check_requirements(flags.require_rows));
  options.require_rows = flags.require_rows;
  if (flags.control) {
    options.compare.judge_unchanged = true;  // else nothing could fail, and nothing would be learnt
  }
  return options;
}

// What gate itself needs to be told by `bench`.
Status check_bench_arguments(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const std::string name = word.substr(0, word.find('='));
    for (const char* own : {"--json", "--list", "--help", "-h"}) {
      if (name == own) {
        return invalid(
            fmt::format("{} cannot stand after --: gate reads what bench measures; --keep DIR keeps it", name));
      }
    }
  }
  return success();
}

Status check_flags(const GateFlags& flags) {
  const bool measures = flags.control || !flags.old_binary.empty();
  if (measures && (!flags.baseline.empty() || !flags.candidate.empty())) {
    return invalid("--ab and --control measure both sides; leave out --baseline and --candidate");
  }
  if (!measures && (flags.baseline.empty() || flags.candidate.empty())) {
    return invalid("gate needs --baseline FILE and --candidate FILE, or --ab OLD_BINARY, or --control");
  }
  if (!measures && !flags.bench_arguments.empty()) {
    return invalid(fmt::format("'{}': what to measure is only for --ab and --control", flags.bench_arguments.front()));
  }
  return check_bench_arguments(flags.bench_arguments);
}

// Before anything else, and without a verdict: where there is none to be written, or nothing must be overwritten.
Status check_gate_files(const GateFlags& flags) {
  return check_files({flags.verdict, flags.compare.md, flags.compare.junit},
                     {flags.baseline, flags.candidate, flags.old_binary, flags.compare.threshold_file});
}

// A gate that is killed writes no verdict, and must not leave the one of an earlier run behind.
Status begin_verdict(CliContext& context, const GateFlags& flags) {
  std::error_code ec;
  if (flags.verdict == "-" || (fs::exists(flags.verdict, ec) && !fs::is_regular_file(flags.verdict, ec))) {
    return success();
  }
  const Error unfinished{ErrorKind::kInterrupted, "this gate has not come to its end: it still runs, or was killed"};
  return context.write_document(flags.verdict, verdict_to_json(refuse(unfinished, "unfinished", {})));
}

// --verdict as it stands on a command line that could not be parsed.
std::string verdict_path(const std::vector<std::string>& arguments) {
  constexpr std::string_view kFlag = "--verdict";
  std::string path = GateFlags{}.verdict;
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == kFlag && i + 1 < arguments.size()) {
      path = arguments[i + 1];
    } else if (arguments[i].rfind(std::string(kFlag) + "=", 0) == 0) {
      path = arguments[i].substr(kFlag.size() + 1);
    }
  }
  return path;
}

bool is_verdict_or_new(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    return true;
  }
  const Result<std::string> text = fs::is_regular_file(path, ec) ? read_file(path) : Result<std::string>(std::string());
  return text.ok() && parse_verdict(*text, path).ok();
}

void refuse_command_line(CliContext& context, const Error& error) {
  const std::string path = verdict_path(context.arguments);
  if (path.empty() || (path != "-" && !is_verdict_or_new(path))) {
    return;  // the word after --verdict may be anything: nothing but a verdict is replaced
  }
  if (const Status written = context.write_document(path, verdict_to_json(refuse(error, "command-line", {})));
      !written.ok()) {
    context.note_error(written.error());
  }
}

AbPlan make_plan(CliContext& context, const GateFlags& flags, const fs::path& folder) {
  AbPlan plan;
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  const fs::path old_build = flags.old_binary.empty() ? self : fs::absolute(flags.old_binary, ec).lexically_normal();
  plan.old_build.binary = old_build;
  plan.present_build.binary = flags.control ? old_build : self;
  std::vector<std::string> arguments = flags.bench_arguments;
  if (arguments.empty()) {
    arguments = {"--suite", "smoke"};
  }
  if (context.device_name != "auto") {
    arguments.insert(arguments.end(), {"--device", context.device_name});
  }
  if (!context.profile_file.empty()) {
    arguments.insert(arguments.end(), {"--profile", context.profile_file});
  }
  arguments.emplace_back("--no-limits");
  plan.old_build.arguments = plan.present_build.arguments = arguments;
  plan.rounds = flags.rounds;
  plan.folder = folder;
  plan.interrupted = &CliContext::interrupted();
  plan.progress = [&context](const std::string& line) { context.show_progress(line); };
  return plan;
}

// The verdict on what was compared, even where the measuring did not come to its end.
GateVerdict decide_after(const Status& measured, Comparison comparison, const GateOptions& options) {
  GateVerdict verdict = decide(std::move(comparison), options);
  if (!measured.ok()) {
    add_error(verdict, measured.error(), "measurement");
  }
  return verdict;
}

GateVerdict measure_both(CliContext& context, const GateFlags& flags, const GateOptions& options,
                         const fs::path& folder) {
  const AbPlan plan = make_plan(context, flags, folder);
  bool cut_short = false;
  auto sets = measure_ab(plan, &cut_short);
  if (!sets.ok()) {
    return refuse(sets.error(), "measurement", options);
  }
  Comparison comparison = compare_results(sets->first, sets->second, options.compare);
  const Status measured =
      cut_short ? Status(Error{ErrorKind::kInterrupted, fmt::format("interrupted after {} of {} rounds",
                                                                    sets->second.files.size(), flags.rounds)})
                : confirm(comparison, options.compare, flags.confirm, remeasure_ab(plan));
  comparison.baseline.path = plan.old_build.binary.string();
  comparison.candidate.path = plan.present_build.binary.string();
  return decide_after(measured, std::move(comparison), options);
}

GateVerdict compare_files(CliContext& context, const GateFlags& flags, const GateOptions& options,
                          const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(flags.baseline, ec)) {
    return refuse(
        {ErrorKind::kNothing,
         fmt::format("there is no baseline {0}: make one with `cudabk bench ... --json {0}`", flags.baseline)},
        "missing-baseline", options);
  }
  LoadFault fault = LoadFault::kNone;
  Result<ResultSet> baseline = load_results(flags.baseline, &fault);
  if (!baseline.ok()) {
    return refuse(baseline.error(), std::string(load_fault_name(fault)), options);
  }
  Result<ResultSet> candidate = load_results(flags.candidate, &fault);
  if (!candidate.ok()) {
    return refuse(candidate.error(), std::string(load_fault_name(fault)), options);
  }
  note_skipped(context, *baseline);
  note_skipped(context, *candidate);
  Comparison comparison = compare_results(*baseline, *candidate, options.compare);
  const AbPlan plan = make_plan(context, flags, folder);
  const std::string device = context.device_name == "auto" ? "" : context.device_name;
  const Status measured =
      confirm(comparison, options.compare, flags.confirm, remeasure_candidate(*baseline, *candidate, plan, device));
  comparison.baseline.path = flags.baseline;
  comparison.candidate.path = flags.candidate;
  return decide_after(measured, std::move(comparison), options);
}

// The rules come first: a verdict says by which ones it was reached.
GateVerdict make_verdict(CliContext& context, const GateFlags& flags) {
  Result<GateOptions> options = to_gate_options(flags);
  if (!options.ok()) {
    return refuse(options.error(), "command-line", {});
  }
  if (const Status ok = check_flags(flags); !ok.ok()) {
    return refuse(ok.error(), "command-line", *options);
  }
  const auto folder = WorkFolder::create(flags.keep);
  if (!folder.ok()) {
    return refuse(folder.error(), "command-line", *options);
  }
  return flags.baseline.empty() ? measure_both(context, flags, *options, folder.value()->path())
                                : compare_files(context, flags, *options, folder.value()->path());
}

// Workflow commands go to stdout; the job summary is a file that GitHub names.
Status tell_github(CliContext& context, const GateVerdict& verdict) {
  context.print(verdict_annotations(verdict));
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (summary == nullptr || *summary == '\0') {
    return success();
  }
  std::ofstream file(summary, std::ios::app);  // other steps write to it too
  file << verdict_markdown(verdict) << "\n";
  return file.flush() ? success() : Status(invalid(fmt::format("cannot write to GITHUB_STEP_SUMMARY ({})", summary)));
}

Status run_gate(CliContext& context, const GateFlags& flags) {
  CUDABK_TRY(check_gate_files(flags));
  CUDABK_TRY(begin_verdict(context, flags));
  GateVerdict verdict = make_verdict(context, flags);
  if (verdict.comparison.cases.empty()) {  // refused: the sides are not described yet
    verdict.comparison.baseline.path = flags.baseline.empty() ? flags.old_binary : flags.baseline;
    verdict.comparison.candidate.path = flags.candidate;
  }
  context.show_progress("");
  // The file first: it is there whatever fails after it.
  if (const Status written = context.write_document(flags.verdict, verdict_to_json(verdict)); !written.ok()) {
    context.note_error(written.error());
  }
  if (verdict.comparison.cases.empty() && !verdict.findings.empty()) {
    context.note_error({kind_of_exit(verdict.exit_status()), verdict.findings.front().message});
  }
  context.note_exit(verdict.exit_status());
  CUDABK_TRY(show_verdict(context, flags.compare, verdict));
  return flags.github ? tell_github(context, verdict) : success();
}

void add_source_options(CLI::App& command, GateFlags& flags) {
  const char* group = "What";
  command.add_option("--baseline", flags.baseline, "result, or folder of results, to compare with")->group(group);
  command.add_option("--candidate", flags.candidate, "result, or folder of results, to judge")->group(group);
  command.add_option("--ab", flags.old_binary, "older cudabk: measure it and this one in turns")->group(group);
  command.add_flag("--control", flags.control, "measure this build (or that of --ab) against itself")->group(group);
  command.add_option("--rounds", flags.rounds, "runs of each build for --ab and --control (default 5)")
      ->check(whole_number(1, 1000))
      ->group(group);
  command.add_option("--keep", flags.keep, "folder for the results that are measured")->group(group);
  command
      .add_option("bench", flags.bench_arguments, "after --: what to measure, as for `bench` (default --suite smoke)")
      ->group(group);
}

void add_rule_options(CLI::App& command, GateFlags& flags) {
  const char* group = "Rules";
  command.add_option("--confirm", flags.confirm, "measure suspects again up to N times, where possible (default 2)")
      ->check(whole_number(0, 100))
      ->group(group);
  command.add_option("--on-inconclusive", flags.on_inconclusive, "fail (default), pass")
      ->check(one_of({"fail", "pass"}))
      ->group(group);
  command
      .add_option("--on-missing", flags.on_missing,
                  "cases on one side only: fail (default), allow-new (only the candidate has them), pass")
      ->check(one_of({"fail", "allow-new", "pass"}))
      ->group(group);
  command
      .add_option("--require-rows", flags.require_rows,
                  "N: at least so many compared cases; REGEX: one of them must match. Repeatable")
      ->allow_extra_args(false)
      ->group(group);
}

}  // namespace

void add_gate_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("gate", "pass or fail for CI: is anything slower than it was");
  const auto flags = std::make_shared<GateFlags>();
  add_source_options(*command, *flags);
  add_compare_options(*command, context, flags->compare);
  add_rule_options(*command, *flags);
  add_output_option(*command, context, "--verdict", flags->verdict, "always written (default verdict.json)")
      ->group("Output");
  command->add_flag("--github", flags->github, "annotations on stdout, and a job summary")->group("Output");
  command->footer(
      "Exit status: 0 pass, 1 regression, 2 unusable file or command line, 3 inconclusive, 4 nothing to compare,\n"
      "5 wrong output, 6 machine unfit, 130 interrupted.\n"
      "Examples:\n"
      "  cudabk gate --baseline base.json --candidate new.json\n"
      "  cudabk gate --baseline base.json --candidate new.json --threshold 5% --md summary.md --junit gate.xml\n"
      "  cudabk gate --ab ./cudabk-main -- mulmat --type q4_K -n 1,8\n"
      "  cudabk gate --control --rounds 3 -- --suite decode");
  command->preparse_callback([&context](size_t) {
    context.on_usage_error = [&context](const Error& error) { refuse_command_line(context, error); };
  });
  set_handler(*command, context, [flags](CliContext& ctx) { return run_gate(ctx, *flags); });
}

}  // namespace cudabk::cli
