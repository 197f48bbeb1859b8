#include "results/shift.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <utility>

#include "measure/statistics.h"

namespace cudabk {
namespace {

std::vector<double> logs_of_blocks(std::span<const double> samples) {
  std::vector<double> valid;
  valid.reserve(samples.size());
  for (const double sample : samples) {
    if (std::isfinite(sample) && sample > 0) {
      valid.push_back(sample);
    }
  }
  std::vector<double> logs = block_medians(valid);
  for (double& value : logs) {
    value = std::log(value);
  }
  return logs;
}

// Two-sided p of the rank sum, with mid-ranks for ties and a continuity correction.
double rank_sum_p(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, of b
  all.reserve(a.size() + b.size());
  for (const double v : a) {
    all.emplace_back(v, false);
  }
  for (const double v : b) {
    all.emplace_back(v, true);
  }
  std::sort(all.begin(), all.end());
  double rank_sum = 0, ties = 0;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    size_t of_b = 0;
    for (; end < all.size() && all[end].first == all[begin].first; ++end) {
      of_b += all[end].second ? 1 : 0;
    }
    const auto count = static_cast<double>(end - begin);
    rank_sum += static_cast<double>(of_b) * (static_cast<double>(begin + end + 1) / 2);
    ties += count * count * count - count;
    begin = end;
  }
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), total = n + m;
  const double u = rank_sum - m * (m + 1) / 2;
  const double variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)));
  if (variance <= 0) {
    return 1;  // all values are equal
  }
  const double z = std::max(0.0, std::abs(u - n * m / 2) - 0.5) / std::sqrt(variance);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

// Rank (from 0) of the lower end of the interval among the n*m ordered differences.
size_t low_rank(size_t n, size_t m, double confidence) {
  const auto pairs = static_cast<double>(n * m);
  const double z = boost::math::quantile(boost::math::normal(), 1 - (1 - confidence) / 2);
  const double rank = pairs / 2 - z * std::sqrt(pairs * static_cast<double>(n + m + 1) / 12) - 0.5;
  return static_cast<size_t>(std::clamp(std::floor(rank), 0.0, (pairs - 1) / 2));
}

}  // namespace

std::vector<double> block_medians(std::span<const double> samples, size_t blocks) {
  if (samples.size() <= blocks) {
    return {samples.begin(), samples.end()};
  }
  std::vector<double> medians(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    const size_t begin = i * samples.size() / blocks, end = (i + 1) * samples.size() / blocks;
    medians[i] = *median(samples.subspan(begin, end - begin));
  }
  return medians;
}

std::optional<Shift> estimate_shift(std::span<const double> baseline, std::span<const double> candidate,
                                    double confidence) {
  const std::vector<double> a = logs_of_blocks(baseline), b = logs_of_blocks(candidate);
  if (a.size() < 2 || b.size() < 2) {
    return std::nullopt;
  }
  std::vector<double> differences;
  differences.reserve(a.size() * b.size());
  for (const double x : a) {
    for (const double y : b) {
      differences.push_back(y - x);
    }
  }
  const size_t low = low_rank(a.size(), b.size(), confidence), high = differences.size() - 1 - low;
  const size_t middle = differences.size() / 2;
  const auto at = [&](size_t rank) { return differences.begin() + static_cast<ptrdiff_t>(rank); };
  // Each call leaves smaller values in front of its rank and larger ones behind it.
  std::nth_element(at(0), at(middle), differences.end());
  double center = *at(middle);
  if (differences.size() % 2 == 0) {
    center = (center + *std::max_element(at(0), at(middle))) / 2;
  }
  std::nth_element(at(0), at(std::min(low, middle)), at(middle));
  std::nth_element(at(middle), at(std::max(high, middle)), differences.end());
  return Shift{std::exp(center), std::exp(*at(low)), std::exp(*at(high)), rank_sum_p(a, b)};
}

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    least = std::max(least, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace cudabk
