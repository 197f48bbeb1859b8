// How far one set of times lies from another, without assuming a distribution. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cudabk {

// The ratio candidate / baseline of two unpaired sets of times.
struct Shift {
  double ratio = 1;          // Hodges-Lehmann: median over all pairs of candidate[j] / baseline[i]
  double low = 1, high = 1;  // confidence interval of the ratio, from the distribution of the rank sum
  double p = 1;              // Mann-Whitney, two-sided, with correction for ties: chance of ranks at least this extreme
};

// Neighbouring samples resemble each other (drift, clock), which rank tests do not expect: more samples than this a
// side are first replaced by the medians of as many runs of consecutive samples.
inline constexpr size_t kMaxBlocks = 40;

// Medians of `blocks` runs of consecutive samples of (nearly) equal length; `samples` itself when there are no more.
std::vector<double> block_medians(std::span<const double> samples, size_t blocks = kMaxBlocks);

// Values that are not finite or not positive are left out. nullopt when a side has fewer than two left.
// `confidence` in (0, 1). The normal approximation of the rank sum is used: fit for 20 samples a side and more.
std::optional<Shift> estimate_shift(std::span<const double> baseline, std::span<const double> candidate,
                                    double confidence);

// Holm's step-down correction: p-values such that "adjusted < alpha" wrongly holds for any true null hypothesis with
// probability below alpha, whatever the dependence between the tests. In the order of the input.
std::vector<double> holm_adjusted(std::span<const double> p);

}  // namespace cudabk
