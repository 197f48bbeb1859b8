// Measuring for a comparison: other builds and this one are run as processes of `cudabk bench`, so that both sides are
// treated alike.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "results/confirm.h"
#include "results/load.h"

namespace cudabk {

struct BenchProcess {
  std::filesystem::path binary;
  std::vector<std::string> arguments;  // after "bench"; without output options
};

// Runs it to its end and loads what it wrote to `json`. Its own output goes to a file beside it. When
// `interrupted` becomes true the process is interrupted too; what it has then is in the file, and kInterrupted is
// returned. `waiting`, where given, is called about once a second. Other errors: of the process, with its last line,
// and of loading.
Result<ResultFile> run_bench(const BenchProcess& process, const std::filesystem::path& json,
                             const std::atomic<bool>* interrupted = nullptr, const std::function<void()>& waiting = {});

struct AbPlan {
  BenchProcess old_build, present_build;  // with A against A the same
  int rounds = 5;                         // each build is run once per round, in turns: AB BA AB ...
  std::filesystem::path folder;           // for the results; exists
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const std::string&)> progress;  // what is going on, about once a second; may be empty
};

// {old build, present build}: one file per round. Drift of the machine hits both alike. Interrupted after the first
// round it returns what was measured and sets `*cut_short`; without `cut_short`, or earlier, it is kInterrupted.
Result<std::pair<ResultSet, ResultSet>> measure_ab(const AbPlan& plan, bool* cut_short = nullptr);

// "bench" arguments that select just these cases: `arguments` with a --filter for their keys. kInvalid when they are
// too many for that.
Result<std::vector<std::string>> narrowed(std::vector<std::string> arguments,
                                          const std::vector<const CaseComparison*>& cases);

// How to measure suspects of an A/B comparison again: the same, for fewer cases, with 2 rounds.
Remeasure remeasure_ab(const AbPlan& plan);

// How to measure suspects of `candidate` again with `binary`: what its runs were called with (output options left out),
// for fewer cases, against the old `baseline`. An error, and so no confirmation, where this is another device or the
// kernels' code is not the candidate's. `device`: "" for the candidate's own. The sets must outlive the function.
Remeasure remeasure_candidate(const ResultSet& baseline, const ResultSet& candidate, const AbPlan& plan,
                              const std::string& device);

// The arguments of a `bench` command line without the word bench, output and display options.
std::vector<std::string> repeatable_arguments(const std::vector<std::string>& arguments);

}  // namespace cudabk
