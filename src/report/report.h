// Reports: results as one HTML page, and in the formats of other tools. Pure: texts from data, no file is touched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dispatch/profile.h"
#include "results/compare.h"
#include "results/load.h"

namespace cudabk {

struct ReportInput {
  std::vector<ResultFile> runs;          // oldest first, never empty; the last one is the result that is shown
  std::optional<Comparison> comparison;  // of the newest run with a baseline
  std::optional<DeviceInfo> device;      // what the newest run's device can do; empty: not known here
  std::optional<Profile> profile;        // the dispatch tables it ran with; empty: not at hand
  std::string title;                     // empty: made from the device and the date
};

// A whole HTML document: style, scripts, chart library and data inside, no reference to anything outside.
std::string report_to_html(const ReportInput& input);

// Tables of the newest run for people, with the changes against the baseline when there is one.
std::string report_to_markdown(const ReportInput& input);
// One row per case of every run, oldest first; `started` and `file` tell them apart.
std::string report_to_csv(const std::vector<ResultFile>& runs);

// ---- formats of other tools, of one run ----
// Google Benchmark's --benchmark_format=json: every sample is a repetition, then the aggregates. For compare.py.
std::string result_to_google_benchmark(const RunResult& run);
// github-action-benchmark, tool "customSmallerIsBetter": a list of {name, unit, value, range, extra}.
std::string result_to_github_action(const RunResult& run);
// Bencher Metric Format: {case: {measure: {value, lower_value, upper_value}}}; latency in ns, throughput in ops/s.
std::string result_to_bencher(const RunResult& run);
// SQL for sqlite3 that makes and fills the table `test_backend_ops` as llama.cpp's program of that name prints it, from
// all runs given.
std::string results_to_llama_sql(const std::vector<ResultFile>& runs);

}  // namespace cudabk
