#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cudabk {
namespace {

constexpr double kMadToSigma = 1.4826;      // 1 / (75th percentile of the standard normal)
constexpr double kFlatOutlierBound = 0.05;  // relative distance that is an outlier among otherwise equal samples

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> s(samples.begin(), samples.end());
  std::sort(s.begin(), s.end());
  return s;
}

double sorted_median(const std::vector<double>& s) {
  const size_t n = s.size();
  return n % 2 == 1 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

double sorted_percentile(const std::vector<double>& s, double percent) {
  const double position = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(s.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, s.size() - 1);
  return s[below] + (position - static_cast<double>(below)) * (s[above] - s[below]);
}

MedianInterval sorted_interval(const std::vector<double>& s, double confidence) {
  // Binomial(n, 1/2): the interval of the i-th smallest and i-th largest value (i from 0) misses the median with
  // probability 2 * P(X <= i). Take the largest i that still misses rarely enough.
  const auto n = static_cast<double>(s.size());
  const double allowed = (1 - confidence) / 2;
  double tail = 0;
  double used_tail = 0;
  size_t rank = 0;
  bool attained = false;
  for (size_t i = 0; i < (s.size() + 1) / 2; ++i) {
    const auto x = static_cast<double>(i);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - n * std::log(2.0));
    if (tail > allowed) {
      if (i == 0) {
        used_tail = tail;
      }
      break;
    }
    used_tail = tail;
    rank = i;
    attained = true;
  }
  return {s[rank], s[s.size() - 1 - rank], std::max(0.0, 1 - 2 * used_tail), attained};
}

}  // namespace

std::optional<double> median(std::span<const double> samples) {
  if (samples.empty()) {
    return std::nullopt;
  }
  return sorted_median(sorted(samples));
}

std::optional<double> mean(std::span<const double> samples) {
  if (samples.empty()) {
    return std::nullopt;
  }
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

std::optional<double> percentile(std::span<const double> samples, double percent) {
  if (samples.empty()) {
    return std::nullopt;
  }
  return sorted_percentile(sorted(samples), percent);
}

std::optional<double> scaled_mad(std::span<const double> samples) {
  if (samples.empty()) {
    return std::nullopt;
  }
  const double center = *median(samples);
  std::vector<double> distance;
  distance.reserve(samples.size());
  for (double v : samples) {
    distance.push_back(std::fabs(v - center));
  }
  return kMadToSigma * *median(distance);
}

std::optional<double> standard_deviation(std::span<const double> samples) {
  if (samples.size() < 2) {
    return std::nullopt;
  }
  const double center = *mean(samples);
  double sum = 0;
  for (double v : samples) {
    sum += (v - center) * (v - center);
  }
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

std::optional<MedianInterval> median_interval(std::span<const double> samples, double confidence) {
  if (samples.empty()) {
    return std::nullopt;
  }
  return sorted_interval(sorted(samples), confidence);
}

std::vector<bool> mark_outliers(std::span<const double> samples, double limit) {
  std::vector<bool> marks(samples.size(), false);
  if (samples.empty()) {
    return marks;
  }
  const double center = *median(samples);
  const double mad = *scaled_mad(samples);
  const double bound = mad > 0 ? limit * mad : kFlatOutlierBound * std::fabs(center);
  for (size_t i = 0; i < samples.size(); ++i) {
    marks[i] = std::fabs(samples[i] - center) > bound;
  }
  return marks;
}

std::vector<double> decile_means(std::span<const double> samples) {
  const size_t groups = std::min<size_t>(10, samples.size());
  std::vector<double> means;
  for (size_t g = 0; g < groups; ++g) {
    const size_t first = samples.size() * g / groups;
    const size_t last = samples.size() * (g + 1) / groups;
    means.push_back(*mean(samples.subspan(first, last - first)));
  }
  return means;
}

Drift detect_drift(std::span<const double> samples, double bound) {
  constexpr size_t kSmallestThird = 6;  // fewer values have no 95 % interval
  constexpr double kConfidence = 0.95;
  const size_t third = samples.size() / 3;
  if (third < kSmallestThird) {
    return {};
  }
  const auto first = samples.first(third);
  const auto last = samples.last(third);
  const double before = *median(first);
  const double after = *median(last);
  if (before <= 0) {
    return {};
  }
  const MedianInterval a = *median_interval(first, kConfidence);
  const MedianInterval b = *median_interval(last, kConfidence);
  Drift drift;
  drift.percent = 100 * (after / before - 1);
  drift.detected = std::fabs(after / before - 1) > bound && (a.high < b.low || b.high < a.low);
  return drift;
}

std::optional<Summary> summarize(std::span<const double> samples, double confidence, double drift_bound) {
  if (samples.empty()) {
    return std::nullopt;
  }
  const std::vector<double> s = sorted(samples);
  Summary r;
  r.count = s.size();
  r.median = sorted_median(s);
  r.mean = *mean(samples);
  r.min = s.front();
  r.max = s.back();
  r.p10 = sorted_percentile(s, 10);
  r.p90 = sorted_percentile(s, 90);
  r.interval = sorted_interval(s, confidence);
  if (r.median > 0 && r.count >= kMinSamplesForNoise) {
    r.noise_percent = 100 * *scaled_mad(samples) / r.median;
    r.half_width = (r.interval.high - r.interval.low) / 2 / r.median;
  }
  const std::vector<bool> marks = mark_outliers(samples);
  r.outliers = static_cast<size_t>(std::count(marks.begin(), marks.end(), true));
  r.drift = detect_drift(samples, drift_bound);
  return r;
}

std::optional<PairedResult> compare_paired(std::span<const double> a, std::span<const double> b, double margin,
                                           double confidence) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] > 0 && b[i] > 0) {
      ratios.push_back(a[i] / b[i]);
    }
  }
  if (ratios.empty()) {
    return std::nullopt;
  }
  PairedResult r;
  r.ratio = *median(ratios);
  r.interval = *median_interval(ratios, confidence);
  r.a_faster = r.interval.attained && r.interval.high < 1 - margin;
  r.b_faster = r.interval.attained && r.interval.low > 1 + margin;
  return r;
}

}  // namespace cudabk
