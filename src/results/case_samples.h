// The samples of one case, pooled over repetitions and files, and what can be concluded from two of them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/result.h"
#include "results/compare.h"
#include "results/shift.h"

namespace cudabk {

struct CaseSamples {
  std::vector<double> ns;
  std::vector<double> mhz;  // per sample; empty where not known for all
  std::vector<int> run;     // per sample: which row it is from, ascending
  bool throttled = false;   // a row is marked as throttled

  void add(const CaseResult& row);
  std::vector<double> run_medians_ns() const;  // one per row with samples
};

// What one quantity (time or cycles) says.
enum class Finding { kSlower, kFaster, kSame, kUnclear };
// `shift.p` is the corrected one. Size: the shift reaches the threshold. Significance: p < 1 - confidence. Same: the
// interval lies within the threshold, or is narrower than the threshold and the shift is below it. Else unclear.
Finding judge_shift(const Shift& shift, double threshold, double confidence);

// The two sides at one clock: where each has at least `min_samples` samples at a common clock (within 1.5 %), the
// others are dropped, from the highest such clock; else nothing is.
struct Matched {
  CaseSamples baseline, candidate;
};
Matched match_clocks(const CaseSamples& baseline, const CaseSamples& candidate, size_t min_samples);

// SM cycles / 1000 per sample (ns * MHz); nullopt where a clock is not known.
std::optional<std::vector<double>> cycles_of(const CaseSamples& samples);

// Whether the runs of the candidate are on the slower (faster) side of those of the baseline in at least three quarters
// of all pairs. True when a side has a single run: there is nothing to hold against it.
bool runs_agree(const CaseSamples& baseline, const CaseSamples& candidate, bool slower);

}  // namespace cudabk
