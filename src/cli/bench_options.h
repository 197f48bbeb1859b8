// The options of `bench` and `test` as typed, and what they mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/run.h"
#include "cli/command.h"
#include "cli/outputs.h"

namespace cudabk::cli {

struct BenchFlags {
  std::string target;  // op, alias, "layer"
  std::string suite;
  std::map<std::string, std::string> axes;  // axis -> sweep as typed
  std::vector<std::string> extra_axes;      // --axis name=sweep
  std::string shapes, variant = "auto", distribution = "normal";
  std::vector<std::string> filters, excludes, no_fuse, tags;
  std::string launch = "graph", fusion = "on", cache = "cold", timer = "auto", order = "fixed", check = "once";
  std::string warmup, precision, throttle_threshold = "75%", on_throttle = "retry";
  std::string min_time, max_time, budget;
  int64_t min_samples = -1, max_samples = -1;
  int repetitions = 0;
  uint64_t seed = 42;
  bool shared_input = false, list = false, no_limits = false, no_trace = false;
  OutputFiles outputs;
};

void add_bench_options(CLI::App& command, CliContext& context, BenchFlags& flags);

// The part of them that makes sense without timing.
void add_test_options(CLI::App& command, CliContext& context, BenchFlags& flags);

// kInvalid with the flag's name.
Result<Selection> to_selection(const BenchFlags& flags);
// Limits of time and samples that were not given: those of the sampler on a GPU, short ones on the emulated device.
Result<RunOptions> to_run_options(const BenchFlags& flags, const CliContext& context, const DeviceInfo& device);

}  // namespace cudabk::cli
