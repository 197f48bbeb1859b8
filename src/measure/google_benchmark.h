// Google Benchmark as a front end: its flags and its output formats over samples that this engine took. Each case is
// one benchmark with manual time and one iteration; its repetitions are the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

struct BenchmarkSamples {
  std::vector<double> ns;                  // at least one
  std::map<std::string, double> counters;  // values that are not finite are left out
  std::string label;
};

struct BenchmarkCase {
  std::string name;
  std::function<Result<BenchmarkSamples>()> run;  // called once when the case is selected
};

struct BenchmarkFlags {
  std::string filter;  // POSIX extended regular expression; a leading '-' negates it. Empty: everything
  bool list = false;
  std::string format = "console";  // console, json, csv
  std::string out;                 // JSON file; empty: none
};

// Whether `argument` belongs to this front end ("--benchmark_..." with or without a value).
bool is_benchmark_flag(std::string_view argument);
// --benchmark_filter=, --benchmark_list_tests[=true|false], --benchmark_format=, --benchmark_out=. kInvalid for any
// other
// --benchmark_ flag, a bad expression or an unknown format; the message names what is accepted.
Result<BenchmarkFlags> parse_benchmark_flags(const std::vector<std::string>& arguments);

// Lists, or measures the selected cases in order and then reports them: human or machine text to `out` as the format
// says, messages to `err`, the JSON file whole or not at all. cpu_time repeats the time, for there is no other.
// Returns how many cases were listed or measured. kNothing when the filter selects none (with the number of cases).
// A case's own error becomes its error entry in the report; the first such error is returned when all is written.
// kInterrupted stops measuring; what there is, is reported first.
Result<int64_t> run_google_benchmark(const std::vector<BenchmarkCase>& cases, const BenchmarkFlags& flags,
                                     std::ostream& out, std::ostream& err);

}  // namespace cudabk
