// When to stop warming up, how many samples to take, and what to think of them. Knows nothing of devices: a sample is
// any callable that returns ns per op.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "measure/statistics.h"

namespace cudabk {

// Takes one sample: blocks until it is done, returns ns per op (> 0).
using SampleFn = std::function<Result<double>()>;

struct Warmup {
  enum class Rule { kAuto, kCount, kSeconds };
  Rule rule = Rule::kAuto;
  int64_t count = 0;
  double seconds = 0;
};
// "auto", "20" (samples), "0.5s" or "200ms". kInvalid otherwise.
Result<Warmup> parse_warmup(std::string_view text);

enum class ThrottleAction { kRetry, kMark, kFail };
Result<ThrottleAction> parse_throttle_action(std::string_view text);  // retry|mark|fail

// "1%" or "0.01" -> 0.01; kInvalid outside (0, limit].
Result<double> parse_fraction(std::string_view text, double limit);

struct SamplerOptions {
  Warmup warmup;
  double warmup_limit_s = 1.0;  // cap of the auto rule; never more than 30 % of max_time_s
  double precision = 0.01;      // wanted half-width of the median's confidence interval, relative to the median
  double confidence = 0.95;
  int64_t min_samples = 20;  // before precision may end the sampling
  int64_t max_samples = 2000;
  double min_time_s = 0;             // of sampling, before precision may end it
  double max_time_s = 2.0;           // of everything: warm-up, samples, clock readings, pauses. Wins over min_samples
  double batch_s = 0.02;             // length of a batch: the clock is read between batches
  double throttle_threshold = 0.75;  // of reference_clock_mhz
  ThrottleAction on_throttle = ThrottleAction::kRetry;
  int max_retries = 4;                             // throttled batches that are taken again, per case
  double retry_pause_s = 0.05;                     // doubles with each retry
  double reference_clock_mhz = 0;                  // 0: the highest clock seen in this measurement
  std::function<Result<double>()> read_clock_mhz;  // empty: no clock, nothing is judged by it
  const std::atomic<bool>* interrupted = nullptr;  // polled between samples; what was taken is kept
  std::function<double()> now_s;                   // empty: the steady clock. For tests
  std::function<void(double)> sleep_s;             // empty: sleeps. For tests
};

enum class StopRule { kPrecision, kMaxSamples, kMaxTime, kInterrupted };
std::string_view stop_rule_name(StopRule rule);  // "precision", "max_samples", "max_time", "interrupted"

struct Batch {
  int64_t first = 0, count = 0;                      // samples[first, first + count)
  double clock_before_mhz = 0, clock_after_mhz = 0;  // 0: not known
  bool throttled = false;
};

struct Measurement {
  std::vector<double> samples;  // kept ones, in the order taken
  std::vector<Batch> batches;   // of the kept samples
  Summary summary;
  StopRule stop = StopRule::kPrecision;
  int64_t warmup_samples = 0;
  double warmup_s = 0;
  bool warmup_settled = true;  // false: the auto rule ran into its cap
  double total_s = 0;
  int64_t invalid_samples = 0;  // not finite or not positive; never kept
  int64_t retries = 0;          // throttled batches thrown away and taken again
  bool throttled = false;       // kept samples include throttled batches
  bool too_few = false;         // fewer than min_samples, or than tell anything of the noise
  bool imprecise = false;       // the interval is wider than asked for
  bool clock_changed = false;   // batches ran at clocks that differ by more than 3 %
  double clock_mhz = 0;         // median over batches; 0: not known
  // Median of ns * MHz / 1000 per sample, with its batch's mean clock: SM cycles. 0: no clock.
  double median_cycles = 0;
};

// Warm-up, then batches until a rule ends it. Errors: the sample's own; kInconclusive when on_throttle is kFail and the
// clock fell below the threshold, or when not one valid sample could be had; kInterrupted when the flag was set before
// the first sample. A measurement without samples is never returned.
Result<Measurement> measure_samples(const SampleFn& sample, const SamplerOptions& options);

// Rounds over several candidates: in each round every candidate is sampled once, in a new random order, so that drift
// hits all alike and rounds can be compared in pairs. One untimed visit each comes first.
struct Interleaved {
  std::vector<std::vector<double>> samples;  // [candidate][round]; all of the same length
  int64_t rounds = 0;                        // complete ones
  StopRule stop = StopRule::kMaxSamples;     // kMaxSamples: all rounds done
};
Result<Interleaved> sample_interleaved(std::span<const SampleFn> candidates, int64_t rounds,
                                       const SamplerOptions& options, uint64_t seed = 1);

}  // namespace cudabk
