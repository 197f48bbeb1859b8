// Robust statistics over samples. Pure functions; no sample order is assumed unless said. Samples are times in ns, but
// nothing here depends on the unit.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cudabk {

// All of these return nullopt for an empty input: no number stands for "no data".
std::optional<double> median(std::span<const double> samples);
std::optional<double> mean(std::span<const double> samples);
// Linear interpolation between closest ranks; `percent` in [0, 100].
std::optional<double> percentile(std::span<const double> samples, double percent);
// Median absolute deviation from the median, scaled by 1.4826 so that it estimates sigma for normal noise.
std::optional<double> scaled_mad(std::span<const double> samples);
// Sample standard deviation; needs two samples.
std::optional<double> standard_deviation(std::span<const double> samples);

// Distribution-free confidence interval of the median: two order statistics.
struct MedianInterval {
  double low = 0, high = 0;
  double coverage = 0;    // exact probability that [low, high] contains the median, for continuous distributions
  bool attained = false;  // coverage >= the confidence asked for; false with too few samples (fewer than 6 at 95 %)
};
// The narrowest symmetric pair of ranks whose coverage reaches `confidence` in (0, 1); with too few samples, the range.
std::optional<MedianInterval> median_interval(std::span<const double> samples, double confidence);

// Marks samples further than `limit` scaled MADs from the median. With a MAD of zero, those further than 5 % of the
// median.
std::vector<bool> mark_outliers(std::span<const double> samples, double limit = 5.0);

// Mean of each tenth of the samples, in the order they were taken; fewer entries with fewer than ten samples.
std::vector<double> decile_means(std::span<const double> samples);

// Change over time. `samples` in the order they were taken.
struct Drift {
  double percent = 0;     // median of the last third over the median of the first third, minus 1
  bool detected = false;  // larger than `bound` and than the noise: the thirds' intervals do not overlap
};
Drift detect_drift(std::span<const double> samples, double bound);

// Fewer samples say nothing of the noise: one has no scatter, two that happen to be close look like precision.
inline constexpr size_t kMinSamplesForNoise = 3;

struct Summary {
  size_t count = 0;
  double median = 0, mean = 0, min = 0, max = 0;
  double p10 = 0, p90 = 0;
  // Empty with fewer than kMinSamplesForNoise samples.
  std::optional<double> noise_percent;  // 100 * scaled MAD / median
  std::optional<double> half_width;     // relative: (high - low) / 2 / median of the interval
  MedianInterval interval;
  size_t outliers = 0;
  Drift drift;
};
std::optional<Summary> summarize(std::span<const double> samples, double confidence = 0.95, double drift_bound = 0.02);

// Paired comparison of two candidates measured in the same rounds (a[i] and b[i] back to back).
struct PairedResult {
  double ratio = 1;         // median of a[i] / b[i]: below 1, a is faster
  MedianInterval interval;  // of the ratio
  bool a_faster = false;    // the whole interval lies below 1 - margin
  bool b_faster = false;    // ... above 1 + margin
};
// Uses the first min(size) rounds whose values are positive; nullopt without any.
std::optional<PairedResult> compare_paired(std::span<const double> a, std::span<const double> b, double margin,
                                           double confidence = 0.95);

}  // namespace cudabk
