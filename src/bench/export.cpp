// CSV, Markdown and JUnit XML of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "bench/report_row.h"
#include "bench/result.h"
#include "core/text.h"
#include "device/label.h"

namespace cudabk {
namespace {

std::string decimal(const std::optional<double>& v) { return v && std::isfinite(*v) ? fmt::format("{}", *v) : ""; }

std::vector<std::string> axis_order(const RunResult& run) {
  std::vector<std::string> order;
  for (const CaseResult& result : run.cases) {
    for (const auto& [name, value] : result.params.values) {
      if (std::find(order.begin(), order.end(), name) == order.end()) {
        order.push_back(name);
      }
    }
  }
  return order;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    line += i == 0 ? "" : ",";
    line += csv_field(fields[i]);
  }
  return line + "\r\n";
}

std::vector<std::string> csv_cells(const CaseResult& r, const RunResult& run, const std::vector<std::string>& axes) {
  std::vector<std::string> fields{r.target};
  for (const std::string& axis : axes) {
    fields.push_back(r.params.get(axis));
  }
  const auto scaled = [](const std::optional<double>& v, double f) { return v ? std::optional(*v * f) : v; };
  const std::optional<double> noise = r.time_ns() ? r.summary->noise_percent : std::nullopt;
  for (std::string field : {r.note,
                            r.variant,
                            r.launch,
                            r.fusion,
                            r.cache,
                            std::string(status_name(r.status)),
                            r.message,
                            r.family,
                            config_text(r.config),
                            decimal(r.time_ns()),
                            decimal(noise),
                            fmt::format("{}", r.samples_ns.size()),
                            decimal(scaled(r.bytes_per_ns(), 1e9)),
                            decimal(scaled(r.operations_per_ns(), 1e9)),
                            decimal(limit_fraction(r, run.limits)),
                            decimal(r.kernel_ns),
                            decimal(r.host_enqueue_ns),
                            fmt::format("{}", r.launches),
                            r.check.done ? decimal(r.check.nmse) : "",
                            fmt::format("{}", r.seed),
                            fmt::format("{}", fmt::join(r.flags, " ")),
                            run.environment.device.name,
                            r.command}) {
    fields.push_back(std::move(field));
  }
  return fields;
}

bool is_failure(CaseStatus status) { return status == CaseStatus::kWrong; }
bool is_skip(CaseStatus status) { return status == CaseStatus::kUnsupported || status == CaseStatus::kInterrupted; }

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string result_to_csv(const RunResult& run, const CsvOptions& options) {
  const std::vector<std::string> axes = axis_order(options.axes_of == nullptr ? run : *options.axes_of);
  const RunEnvironment& e = run.environment;
  const std::vector<std::string> run_cells =
      options.with_run ? std::vector<std::string>{options.file, e.started, e.tool_version} : std::vector<std::string>{};
  std::vector<std::string> header;
  if (options.with_run) {
    header = {"file", "started", "cudabk"};
  }
  header.emplace_back("target");
  header.insert(header.end(), axes.begin(), axes.end());
  for (const char* name : {"shape_name",
                           "variant",
                           "launch",
                           "fusion",
                           "cache",
                           "status",
                           "message",
                           "family",
                           "config",
                           "time_ns",
                           "noise_percent",
                           "samples",
                           "bytes_per_second",
                           "operations_per_second",
                           "limit_fraction",
                           "kernel_ns",
                           "host_enqueue_ns",
                           "launches",
                           "nmse",
                           "seed",
                           "flags",
                           "device",
                           "command"}) {
    header.emplace_back(name);
  }
  std::string text = options.with_header ? csv_line(header) : "";
  for (const CaseResult& result : run.cases) {
    std::vector<std::string> cells = csv_cells(result, run, axes);
    cells.insert(cells.begin(), run_cells.begin(), run_cells.end());
    text += csv_line(cells);
  }
  return text;
}

std::string result_to_markdown(const RunResult& run) {
  const RowLayout layout(run.cases);
  const std::vector<Column> columns = layout.columns();
  std::string text = markdown_text(fmt::format("{}, cudabk {}, {}",
                                               device_label(run.environment.device.name, run.environment.device.arch),
                                               run.environment.tool_version, layout.common())) +
                     "\n\n";
  std::string rule;
  for (const Column& column : columns) {
    text += "| " + column.header + " ";
    rule += column.right ? "|--:" : "|---";
  }
  text += "|\n" + rule + "|\n";
  for (const CaseResult& result : run.cases) {
    for (const std::string& cell : layout.cells(result, run.limits)) {
      text += "| " + markdown_text(cell) + " ";
    }
    text += "|\n";
  }
  return text;
}

std::string result_to_junit(const RunResult& run) {
  size_t failures = 0, errors = 0, skipped = 0;
  std::string body;
  for (const CaseResult& r : run.cases) {
    body += fmt::format("  <testcase classname=\"cudabk.{}\" name=\"{}\" time=\"{:.9f}\"", xml_text(r.target),
                        xml_text(r.key), r.time_ns().value_or(0) * 1e-9);
    if (r.status == CaseStatus::kOk) {
      body += "/>\n";
      continue;
    }
    const bool failure = is_failure(r.status), skip = is_skip(r.status);
    failures += failure ? 1 : 0;
    skipped += skip ? 1 : 0;
    errors += failure || skip ? 0 : 1;
    body += fmt::format(">\n    <{} message=\"{}: {}\"/>\n  </testcase>\n",
                        failure ? "failure" : (skip ? "skipped" : "error"), status_name(r.status), xml_text(r.message));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"cudabk\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" hostname=\"{}\">\n"
      "{}</testsuite>\n",
      run.cases.size(), failures, errors, skipped, xml_text(run.environment.device.name), body);
}

}  // namespace cudabk
