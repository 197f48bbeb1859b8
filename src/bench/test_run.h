// `cudabk test`: correctness only. Every case of every op with every family that can run it, on poisoned and guarded
// memory, compared whole with the reference.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/result.h"
#include "bench/run.h"

namespace cudabk {

struct TestOptions {
  uint64_t seed = 42;
  std::string distribution = "normal";
  std::set<std::string> no_fuse;
  std::string dump_dir;                   // --dump-failing; empty: none
  std::vector<std::string> base_command;  // device and other options of the reproducing command
  std::map<std::string, std::string> tags;
  std::vector<std::string> arguments;
  const std::atomic<bool>* interrupted = nullptr;
};

// Everything that has test cases: the op list, the layer and the fusion graphs.
std::vector<const OpDef*> test_targets();
// One of these by name or alias; the error lists them.
Result<const OpDef*> find_test_target(std::string_view name);

// The test cases of `targets`: "all" takes the table's choice (as a graph) and every applicable family with its default
// configuration (eagerly). `selection.axes` keeps the cases with these values; targets that lack such an axis have
// none. kNothing when no case is left. `profile`: as for variants_for.
Result<std::vector<BenchCase>> test_cases(std::span<const OpDef* const> targets, const Selection& selection,
                                          const DeviceInfo& device, const Profile* profile = nullptr);

// Rows without samples: status ok, wrong, unsupported (skipped, with the reason) or failed.
Result<RunResult> run_tests(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                            const TestOptions& options, RunObserver& observer);

}  // namespace cudabk
