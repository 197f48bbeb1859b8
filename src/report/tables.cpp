// Results as tables: Markdown, CSV over a history, and llama.cpp's SQL.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "bench/report_row.h"
#include "bench/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/report.h"
#include "results/render_rows.h"

namespace cudabk {
namespace {

constexpr size_t kMarkdownChanges = 20;

std::string percent(const std::optional<double>& v) { return v ? fmt::format("{:+.1f} %", 100 * *v) : "-"; }
std::string time_text(const std::optional<double>& ns) { return ns ? format_time_ns(*ns) : "-"; }

std::string changes_markdown(const Comparison& comparison) {
  std::string text = "\n### Against the baseline\n\n";
  for (const std::string& note : comparison.notes) {
    text += markdown_text(note) + "\n\n";
  }
  text += "| case | baseline | now | change | interval | verdict |\n|---|--:|--:|--:|--:|---|\n";
  const std::vector<const CaseComparison*> cases = worst_first(comparison);
  for (size_t i = 0; i < std::min(cases.size(), kMarkdownChanges); ++i) {
    const CaseComparison& c = *cases[i];
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", markdown_code(c.key), time_text(c.baseline_ns), time_text(c.candidate_ns),
        percent(c.change), c.change_low ? percent(c.change_low) + " … " + percent(c.change_high) : "-",
        markdown_text(fmt::format("{}{}{}", verdict_name(c.verdict), c.message.empty() ? "" : ": ", c.message)));
  }
  if (cases.size() > kMarkdownChanges) {
    text += fmt::format("\n{} more; `--html` and `cudabk compare` have them all.\n", cases.size() - kMarkdownChanges);
  }
  return text;
}

// A text in SQL; the NUL character would end the statement.
std::string sql_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "''";
    } else if (c != '\0') {
      out += c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  return out + "'";
}

// The case in the words of that program, where it has the same one; its own words for a matrix product:
// type_a=q4_K,type_b=f32,m=4096,n=1,k=14336,bs=[1,1],nr=[1,1],per=[0,1,2,3],k_v=0,o=1
std::string llama_params(const CaseResult& c) {
  const std::string type = c.params.get("type");
  if (c.target == "mul_mat" && c.params.values.size() == 4 && !type.empty()) {
    return fmt::format("type_a={},type_b=f32,m={},n={},k={},bs=[1,1],nr=[1,1],per=[0,1,2,3],k_v=0,o=1", type,
                       c.params.get("m"), c.params.get("n"), c.params.get("k"));
  }
  std::vector<std::string> pairs;
  for (const auto& [name, value] : c.params.values) {
    pairs.push_back(name + "=" + value);
  }
  return fmt::format("{}", fmt::join(pairs, ","));
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c); });
  return text;
}

std::string llama_row(const RunResult& run, const CaseResult& c) {
  const RunEnvironment& e = run.environment;
  const std::optional<double> ns = c.time_ns();
  const bool timed = ns.has_value();
  const bool supported = c.status != CaseStatus::kUnsupported;
  const bool passed = c.status == CaseStatus::kOk && (!c.check.done || c.check.passed);
  const auto real = [](double v) { return fmt::format("'{:.6f}'", std::isfinite(v) ? v : 0.0); };
  const std::string values[] = {
      sql_text(e.started),
      sql_text(e.tool_version),
      sql_text(e.device.id),
      sql_text(upper(c.target)),
      sql_text(llama_params(c)),
      timed ? "'perf'" : "'test'",
      supported ? "'1'" : "'0'",
      passed ? "'1'" : "'0'",
      sql_text(c.message),
      real(ns.value_or(0) / 1e3),
      real(c.operations_per_ns().value_or(0) * 1e9),
      real(c.bytes_per_ns().value_or(0)),
      fmt::format("'{}'", static_cast<int64_t>(std::clamp(c.cost.bytes, 0.0, 1e18) / 1024)),
      fmt::format("'{}'", timed ? c.samples_ns.size() * static_cast<size_t>(std::max(c.copies, 1)) : 0),
      sql_text(e.device.name),
      "'cudabk'"};
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

std::string report_to_markdown(const ReportInput& input) {
  const ResultFile& file = input.runs.back();
  std::string text = result_to_markdown(file.run);
  if (!file.run.complete) {
    text += fmt::format("\nNot complete: {}\n", markdown_text(file.run.incomplete_reason));
  }
  return input.comparison ? text + changes_markdown(*input.comparison) : text;
}

std::string report_to_csv(const std::vector<ResultFile>& runs) {
  RunResult axes;  // every axis of any run is a column of all rows
  for (const ResultFile& file : runs) {
    axes.cases.insert(axes.cases.end(), file.run.cases.begin(), file.run.cases.end());
  }
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    text += result_to_csv(
        runs[i].run,
        {.axes_of = &axes, .file = runs[i].path.filename().string(), .with_run = true, .with_header = i == 0});
  }
  return text;
}

std::string results_to_llama_sql(const std::vector<ResultFile>& runs) {
  constexpr std::pair<const char*, const char*> kFields[] = {
      {"test_time", "TEXT"},       {"build_commit", "TEXT"}, {"backend_name", "TEXT"},
      {"op_name", "TEXT"},         {"op_params", "TEXT"},    {"test_mode", "TEXT"},
      {"supported", "INTEGER"},    {"passed", "INTEGER"},    {"error_message", "TEXT"},
      {"time_us", "REAL"},         {"flops", "REAL"},        {"bandwidth_gb_s", "REAL"},
      {"memory_kb", "INTEGER"},    {"n_runs", "INTEGER"},    {"device_description", "TEXT"},
      {"backend_reg_name", "TEXT"}};
  std::vector<std::string> names, declarations;
  for (const auto& [name, type] : kFields) {
    names.emplace_back(name);
    declarations.push_back(fmt::format("  {} {}", name, type));
  }
  std::string text =
      fmt::format("CREATE TABLE IF NOT EXISTS test_backend_ops (\n{}\n);\n\n", fmt::join(declarations, ",\n"));
  for (const ResultFile& file : runs) {
    for (const CaseResult& c : file.run.cases) {
      text += fmt::format("INSERT INTO test_backend_ops ({}) VALUES ({});\n", fmt::join(names, ", "),
                          llama_row(file.run, c));
    }
  }
  return text;
}

}  // namespace cudabk
