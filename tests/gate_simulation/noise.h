// Suites as a noisy machine would measure them, for trying the gate's rules on known truths.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "results/load.h"

namespace cudabk::test {

// What disturbs a measurement. All relative to the true time.
struct NoiseModel {
  double run_offset = 0.004;                         // sigma: the machine differs from run to run
  double drift = 0.006;                              // largest linear drift over a run, either way
  double case_offset = 0.003;                        // sigma: of one case in one run (where memory came to lie)
  double sample_low = 0.003, sample_high = 0.015;    // sigma of single samples, per case between these
  double slow_sigma = 0.003, slow_memory = 0.9;      // neighbouring samples: an AR(1) process
  double outlier_chance = 0.02, outlier_mean = 0.5;  // a sample that takes this much longer, exponentially distributed
  double low_clock = 1755, high_clock = 1980;        // MHz
  double to_low = 0.005, to_high = 0.12;             // chance of a change of level per batch: 4 % of the time low
  double clock_error = 0.002;                        // sigma of a clock reading
  bool clock_known = true;                           // else rows have no clock
  int batches = 6, batch_samples = 10;
};

struct Suite {
  std::vector<double> true_ns, sample_sigma;  // per case
};

// `cases` with times from 2 us to 2 ms.
Suite make_suite(size_t cases, const NoiseModel& model, std::mt19937_64& random);

// One run of the suite. Case `changed` (none: SIZE_MAX) takes `factor` times as long. `only`: the indices to measure;
// empty: all. `code`: the hash of all kernels.
ResultSet measure(const Suite& suite, const NoiseModel& model, size_t changed, double factor,
                  const std::vector<size_t>& only, const std::string& code, std::mt19937_64& random);

std::string simulated_key(size_t index);
size_t simulated_index(const std::string& key);

}  // namespace cudabk::test
