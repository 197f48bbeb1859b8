// cudabk compare: two results case by case; never fails on differences.
#include <memory>

#include "cli/gate_options.h"
#include "cli/outputs.h"
#include "core/file.h"

namespace cudabk::cli {
namespace {

struct CommandFlags {
  std::vector<std::string> paths;
  CompareFlags compare;
};

// A verdict file that a gate has written, shown again.
Status show_file(CliContext& context, const CommandFlags& flags) {
  CUDABK_ASSIGN(const std::string text, read_file(flags.paths[0]));
  const Result<GateVerdict> verdict = parse_verdict(text, flags.paths[0]);
  if (!verdict.ok()) {
    return Error{verdict.error().kind, verdict.error().message + " (two results are compared; one verdict is shown)"};
  }
  return show_verdict(context, flags.compare, *verdict);
}

Status run_compare(CliContext& context, const CommandFlags& flags) {
  std::vector<std::string> inputs = flags.paths;
  inputs.push_back(flags.compare.threshold_file);
  CUDABK_TRY(check_files({flags.compare.json, flags.compare.md, flags.compare.junit}, inputs));
  if (flags.paths.size() == 1) {
    return show_file(context, flags);
  }
  GateOptions options;
  CUDABK_ASSIGN(options.compare, to_compare_options(flags.compare));
  CUDABK_ASSIGN(const ResultSet baseline, load_results(flags.paths[0]));
  CUDABK_ASSIGN(const ResultSet candidate, load_results(flags.paths[1]));
  note_skipped(context, baseline);
  note_skipped(context, candidate);
  Comparison comparison = compare_results(baseline, candidate, options.compare);
  comparison.baseline.path = flags.paths[0];
  comparison.candidate.path = flags.paths[1];
  const GateVerdict verdict = decide(std::move(comparison), options);
  CUDABK_TRY(show_verdict(context, flags.compare, verdict));
  if (verdict.comparison.compared() == 0) {
    return Error{ErrorKind::kNothing, verdict.findings.front().message};
  }
  return success();
}

}  // namespace

void add_compare_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("compare", "two results case by case; never fails on differences");
  const auto flags = std::make_shared<CommandFlags>();
  command
      ->add_option_function<std::string>(
          "baseline", [flags](const std::string& path) { flags->paths.insert(flags->paths.begin(), path); },
          "a result, or a folder of them; or, alone, a verdict to show again")
      ->required();
  command->add_option_function<std::string>(
      "candidate", [flags](const std::string& path) { flags->paths.push_back(path); },
      "the result, or folder of them, to compare with it");
  add_compare_options(*command, context, flags->compare);
  add_output_option(*command, context, "--json", flags->compare.json, "verdict document, schema cudabk-verdict/1")
      ->group("Output");
  command->footer(
      "Examples:\n"
      "  cudabk compare base.json new.json\n"
      "  cudabk compare main/ branch/ --threshold 1% --md -\n"
      "  cudabk compare verdict.json --all");
  set_handler(*command, context, [flags](CliContext& ctx) { return run_compare(ctx, *flags); });
}

}  // namespace cudabk::cli
