#include "cli/gate_options.h"

#include <cstdint>

#include "core/file.h"
#include "core/units.h"
#include "measure/sampler.h"
#include "results/render.h"

namespace cudabk::cli {

void add_compare_options(CLI::App& command, CliContext& context, CompareFlags& flags) {
  const char* group = "Rules";
  command.add_option("--threshold", flags.threshold, "smaller changes do not count (default 3%)")->group(group);
  command.add_option("--threshold-file", flags.threshold_file, "lines REGEX LIMIT: other thresholds by case key")
      ->group(group);
  command.add_option("--confidence", flags.confidence, "of intervals and of the verdict as a whole (default 0.99)")
      ->group(group);
  command.add_flag("--force", flags.force, "compare other devices, launch or cache modes and timers")->group(group);
  command.add_flag("--judge-unchanged", flags.judge_unchanged, "judge cases with identical code too (A against A)")
      ->group(group);
  group = "Output";
  command.add_flag("--all", flags.all, "every row of the table, also those that need no attention")->group(group);
  add_output_option(command, context, "--md", flags.md, "Markdown for a pull request")->group(group);
  add_output_option(command, context, "--junit", flags.junit, "JUnit XML, one test per case")->group(group);
}

Result<CompareOptions> to_compare_options(const CompareFlags& flags) {
  constexpr double kLargestThreshold = 10;
  Result<double> threshold = parse_fraction(flags.threshold, kLargestThreshold);
  if (!threshold.ok()) {
    return std::move(threshold).error().with_context("--threshold");
  }
  Result<double> confidence = parse_fraction(flags.confidence, 1.0);
  if (!confidence.ok()) {
    return std::move(confidence).error().with_context("--confidence");
  }
  if (*confidence < 0.5 || *confidence >= 1) {
    return invalid("--confidence: expected a number from 0.5 to below 1, found " + flags.confidence);
  }
  CompareOptions options;
  options.thresholds = Thresholds(*threshold);
  if (!flags.threshold_file.empty()) {
    if (Status added = options.thresholds.add_file(flags.threshold_file); !added.ok()) {
      return std::move(added).error().with_context("--threshold-file");
    }
  }
  options.confidence = *confidence;
  options.force = flags.force;
  options.judge_unchanged = flags.judge_unchanged;
  return options;
}

void note_skipped(CliContext& context, const ResultSet& set) {
  for (const std::string& skipped : set.skipped) {
    context.notice("note: left out " + skipped);
  }
}

Status show_verdict(CliContext& context, const CompareFlags& flags, const GateVerdict& verdict) {
  context.show_progress("");
  TableOptions table;
  table.color = context.color && !context.machine_stdout;
  if (flags.all || context.verbose) {
    table.quiet_rows = SIZE_MAX;
  }
  if (!verdict.comparison.cases.empty() || verdict.findings.empty()) {  // else the error has been said
    context.print(verdict_table(verdict, table));
  }
  if (!flags.json.empty()) {
    CUDABK_TRY(context.write_document(flags.json, verdict_to_json(verdict)));
  }
  if (!flags.md.empty()) {
    CUDABK_TRY(context.write_document(flags.md, verdict_markdown(verdict)));
  }
  if (!flags.junit.empty()) {
    CUDABK_TRY(context.write_document(flags.junit, verdict_junit(verdict)));
  }
  return success();
}

}  // namespace cudabk::cli
