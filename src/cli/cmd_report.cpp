// cudabk report: results as a page and in the formats of other tools.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/gate_options.h"
#include "cli/outputs.h"
#include "core/file.h"
#include "report/report.h"
#include "results/compare.h"
#include "tuning/family_set.h"

namespace cudabk::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> results;
  std::string baseline;
  CompareFlags compare;
  std::string title;
  std::string html, md, csv, junit, google_benchmark, github_action, bencher, sql;
};

constexpr std::string_view kBuiltIn = "built-in ";
constexpr const char* kDefaultPage = "report.html";

// What the GPU of the run can do: its architecture's abilities with the numbers that were recorded.
std::optional<DeviceInfo> recorded_device(const RunResult& run) {
  const DeviceInfo& seen = run.environment.device;
  Result<DeviceInfo> info = describe_architecture(seen.arch);
  if (!info.ok()) {
    return std::nullopt;
  }
  info->id = seen.id;
  info->name = seen.name;
  info->sm_count = seen.sm_count;
  info->l2_bytes = seen.l2_bytes;
  info->memory_bytes = seen.memory_bytes;
  info->emulated = seen.emulated;
  return std::move(info).value();
}

// The profile that the run names, or the one on the command line. Only what was asked for by name can fail.
Result<std::optional<Profile>> recorded_profile(const CliContext& context, const RunResult& run,
                                                const std::optional<DeviceInfo>& device) {
  if (!device) {
    return std::optional<Profile>();
  }
  if (!context.profile_file.empty()) {
    CUDABK_ASSIGN(Profile given, find_profile(*device, context.profile_file, "", family_set()));
    return std::optional<Profile>(std::move(given));
  }
  const std::string& source = run.environment.profile_source;
  std::error_code ec;
  const bool built_in = source.starts_with(kBuiltIn);
  if (!built_in && !std::filesystem::is_regular_file(source, ec)) {
    return std::optional<Profile>();
  }
  Result<Profile> found = find_profile(*device, built_in ? "" : source, "", family_set());
  return found.ok() ? std::optional<Profile>(std::move(found).value()) : std::optional<Profile>();
}

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

Result<ReportInput> load(CliContext& context, const ReportFlags& flags) {
  ReportInput input;
  CUDABK_ASSIGN(ResultSet set, load_history(paths_of(flags.results)));
  note_skipped(context, set);
  input.runs = std::move(set.files);
  input.title = flags.title;
  input.device = recorded_device(input.runs.back().run);
  CUDABK_ASSIGN(input.profile, recorded_profile(context, input.runs.back().run, input.device));
  if (!flags.baseline.empty()) {
    CUDABK_ASSIGN(const CompareOptions options, to_compare_options(flags.compare));
    CUDABK_ASSIGN(const ResultSet baseline, load_results(flags.baseline));
    note_skipped(context, baseline);
    ResultSet newest;
    newest.files.push_back(input.runs.back());
    input.comparison = compare_results(baseline, newest, options);
  }
  return input;
}

struct Output {
  const std::string* file;
  std::function<std::string()> make;
};

Status run(CliContext& context, const ReportFlags& given) {
  ReportFlags flags = given;
  ReportInput input;
  const auto newest = [&]() -> const RunResult& { return input.runs.back().run; };
  const std::vector<Output> outputs = {
      {&flags.html, [&] { return report_to_html(input); }},
      {&flags.md, [&] { return report_to_markdown(input); }},
      {&flags.csv, [&] { return report_to_csv(input.runs); }},
      {&flags.junit, [&] { return result_to_junit(newest()); }},
      {&flags.google_benchmark, [&] { return result_to_google_benchmark(newest()); }},
      {&flags.github_action, [&] { return result_to_github_action(newest()); }},
      {&flags.bencher, [&] { return result_to_bencher(newest()); }},
      {&flags.sql, [&] { return results_to_llama_sql(input.runs); }},
  };
  const bool any = std::any_of(outputs.begin(), outputs.end(), [](const Output& o) { return !o.file->empty(); });
  if (!any) {
    flags.html = kDefaultPage;
  }
  std::vector<std::string> files, inputs = flags.results;
  std::transform(outputs.begin(), outputs.end(), std::back_inserter(files), [](const Output& o) { return *o.file; });
  inputs.insert(inputs.end(), {flags.baseline, flags.compare.threshold_file});
  CUDABK_TRY(check_files(files, inputs));
  CUDABK_ASSIGN(input, load(context, flags));
  for (const Output& output : outputs) {
    if (output.file->empty()) {
      continue;
    }
    CUDABK_TRY(context.write_document(*output.file, output.make()));
    if (*output.file != "-") {
      context.print(fmt::format("written: {}\n", *output.file));
    }
  }
  return success();
}

}  // namespace

void add_report_command(CLI::App& app, CliContext& context) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "results as one HTML page, and in the formats of other tools");
  command
      ->add_option("results", flags->results, "results, or folders of them: the newest is shown, all are its history")
      ->required();
  command->add_option("--baseline", flags->baseline, "a result, or a folder of them, to show changes against");
  command->add_option("--threshold", flags->compare.threshold, "--baseline: smaller changes do not count (default 3%)");
  command->add_option("--threshold-file", flags->compare.threshold_file, "--baseline: lines REGEX LIMIT");
  command->add_option("--confidence", flags->compare.confidence,
                      "--baseline: of intervals and verdicts (default 0.99)");
  command->add_flag("--force", flags->compare.force,
                    "--baseline: compare other devices, launch or cache modes and timers");
  command->add_option("--title", flags->title, "title of the page (default: device and date)");
  add_output_option(*command, context, "--html", flags->html, "a page that works offline (default: report.html)");
  add_output_option(*command, context, "--md", flags->md, "Markdown");
  add_output_option(*command, context, "--csv", flags->csv, "CSV, one line per case of every result");
  add_output_option(*command, context, "--junit", flags->junit, "JUnit XML");
  add_output_option(*command, context, "--google-benchmark", flags->google_benchmark,
                    "JSON for Google Benchmark's compare.py");
  add_output_option(*command, context, "--github-action", flags->github_action,
                    "list for github-action-benchmark (customSmallerIsBetter)");
  add_output_option(*command, context, "--bencher", flags->bencher, "Bencher Metric Format");
  add_output_option(*command, context, "--sql", flags->sql, "llama.cpp's table test_backend_ops, for sqlite3");
  command->footer(
      "Examples:\n  cudabk bench mulmat --type q4_K,q6_K --json new.json\n"
      "  cudabk report new.json --html report.html\n"
      "  cudabk report history/ --baseline base.json --html report.html --md -\n"
      "  cudabk report new.json --sql - | sqlite3 ops.db");
  set_handler(*command, context, [flags](CliContext& c) { return run(c, *flags); });
}

}  // namespace cudabk::cli
