// Google Benchmark's flags and formats over the same cases.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/run.h"

namespace cudabk {

// Runs (or lists) the cases that --benchmark_filter selects; reports to `out` as --benchmark_format says. A wrong
// result is an error entry. kInvalid for any other --benchmark_ flag, kNothing when none is selected; else the first
// failed case's error.
Status run_google_benchmark_cases(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                                  const RunOptions& options, const std::vector<std::string>& google_flags,
                                  std::ostream& out, std::ostream& err);

}  // namespace cudabk
