#include "results/case_samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "measure/statistics.h"

namespace cudabk {
namespace {

constexpr double kSameClock = 0.015;  // relative: below the smallest step that matters at a threshold of 3 %

bool valid(double v) { return std::isfinite(v) && v > 0; }

// Clock of every sample; empty when it is not known for each.
std::vector<double> clock_per_sample(const CaseResult& row) {
  const int64_t known = std::accumulate(row.clock_samples.begin(), row.clock_samples.end(), int64_t{0});
  if (row.clock_samples.size() != row.clocks_mhz.size() || known != static_cast<int64_t>(row.samples_ns.size())) {
    return {};
  }
  std::vector<double> mhz;
  mhz.reserve(row.samples_ns.size());
  for (size_t i = 0; i < row.clock_samples.size(); ++i) {
    if (!valid(row.clocks_mhz[i])) {
      return {};
    }
    mhz.insert(mhz.end(), static_cast<size_t>(row.clock_samples[i]), row.clocks_mhz[i]);
  }
  return mhz;
}

CaseSamples at_clock(const CaseSamples& samples, double mhz) {
  CaseSamples kept;
  kept.throttled = samples.throttled;
  for (size_t i = 0; i < samples.ns.size(); ++i) {
    if (std::abs(samples.mhz[i] - mhz) <= kSameClock * mhz) {
      kept.ns.push_back(samples.ns[i]);
      kept.mhz.push_back(samples.mhz[i]);
      kept.run.push_back(samples.run[i]);
    }
  }
  return kept;
}

}  // namespace

void CaseSamples::add(const CaseResult& row) {
  if (row.status != CaseStatus::kOk) {
    return;
  }
  const bool first = ns.empty();
  const std::vector<double> clocks = clock_per_sample(row);
  const bool clocks_known = !clocks.empty() && (first || !mhz.empty());
  std::vector<double> added;
  for (size_t i = 0; i < row.samples_ns.size(); ++i) {
    if (valid(row.samples_ns[i])) {
      added.push_back(row.samples_ns[i]);
      if (clocks_known) {
        mhz.push_back(clocks[i]);
      }
    }
  }
  if (added.empty()) {
    return;
  }
  if (!clocks_known) {
    mhz.clear();
  }
  run.insert(run.end(), added.size(), first ? 0 : run.back() + 1);
  ns.insert(ns.end(), added.begin(), added.end());
  throttled = throttled || std::any_of(row.flags.begin(), row.flags.end(),
                                       [](const std::string& flag) { return flag.rfind("throttled", 0) == 0; });
}

std::vector<double> CaseSamples::run_medians_ns() const {
  std::vector<double> medians;
  for (size_t begin = 0; begin < ns.size();) {
    size_t end = begin;
    while (end < ns.size() && run[end] == run[begin]) {
      ++end;
    }
    medians.push_back(*median(std::span(ns).subspan(begin, end - begin)));
    begin = end;
  }
  return medians;
}

Finding judge_shift(const Shift& shift, double threshold, double confidence) {
  // As far below as above: 3 % slower is undone by 2.9 % faster.
  const double slower = 1 + threshold, faster = 1 / slower;
  const bool significant = shift.p < 1 - confidence;
  if (shift.ratio >= slower || shift.ratio <= faster) {
    return !significant ? Finding::kUnclear : (shift.ratio > 1 ? Finding::kSlower : Finding::kFaster);
  }
  const bool within = shift.low > faster && shift.high < slower;
  const bool narrow = shift.high / shift.low <= slower;
  return within || narrow ? Finding::kSame : Finding::kUnclear;
}

Matched match_clocks(const CaseSamples& baseline, const CaseSamples& candidate, size_t min_samples) {
  if (baseline.mhz.empty() || candidate.mhz.empty()) {
    return {baseline, candidate};
  }
  std::vector<double> clocks = candidate.mhz;
  std::sort(clocks.begin(), clocks.end(), std::greater<>());
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  double tried = INFINITY;
  for (const double mhz : clocks) {
    if (mhz > tried * (1 - kSameClock / 2)) {
      continue;  // nearly the samples of the last one
    }
    tried = mhz;
    Matched matched{at_clock(baseline, mhz), at_clock(candidate, mhz)};
    if (matched.baseline.ns.size() >= min_samples && matched.candidate.ns.size() >= min_samples) {
      return matched;
    }
  }
  return {baseline, candidate};
}

std::optional<std::vector<double>> cycles_of(const CaseSamples& samples) {
  if (samples.mhz.size() != samples.ns.size()) {
    return std::nullopt;
  }
  std::vector<double> cycles(samples.ns.size());
  std::transform(samples.ns.begin(), samples.ns.end(), samples.mhz.begin(), cycles.begin(), std::multiplies<>());
  return cycles;
}

bool runs_agree(const CaseSamples& baseline, const CaseSamples& candidate, bool slower) {
  const std::vector<double> a = baseline.run_medians_ns(), b = candidate.run_medians_ns();
  if (a.size() < 2 || b.size() < 2) {
    return true;
  }
  size_t agree = 0;
  for (const double x : a) {
    for (const double y : b) {
      agree += (slower ? y > x : y < x) ? 1 : 0;
    }
  }
  return 4 * agree >= 3 * a.size() * b.size();
}

}  // namespace cudabk
