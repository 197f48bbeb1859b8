#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cudabk {
namespace {

constexpr uint64_t kStatisticsSeed = 20240607;

TEST(Statistics, EmptyInputHasNoValue) {
  const std::vector<double> none;
  EXPECT_FALSE(median(none).has_value());
  EXPECT_FALSE(mean(none).has_value());
  EXPECT_FALSE(percentile(none, 50).has_value());
  EXPECT_FALSE(median_interval(none, 0.95).has_value());
  EXPECT_FALSE(summarize(none).has_value());
  EXPECT_FALSE(compare_paired(none, none, 0.01).has_value());
  EXPECT_TRUE(mark_outliers(none).empty());
  EXPECT_TRUE(decile_means(none).empty());
}

TEST(Statistics, KnownValues) {
  const std::vector<double> v = {7, 1, 3, 9, 5, 11};
  EXPECT_DOUBLE_EQ(*median(v), 6);
  EXPECT_DOUBLE_EQ(*mean(v), 6);
  EXPECT_DOUBLE_EQ(*percentile(v, 0), 1);
  EXPECT_DOUBLE_EQ(*percentile(v, 100), 11);
  EXPECT_DOUBLE_EQ(*percentile(v, 25), 3.5);
  EXPECT_DOUBLE_EQ(*scaled_mad(v), 1.4826 * 3);
  EXPECT_NEAR(*standard_deviation(v), std::sqrt(70.0 / 5), 1e-12);
  const std::vector<double> odd = {3, 1, 2};
  EXPECT_DOUBLE_EQ(*median(odd), 2);
}

TEST(Statistics, OneSample) {
  const std::vector<double> one = {42};
  const Summary s = *summarize(one);
  EXPECT_EQ(s.count, 1U);
  EXPECT_DOUBLE_EQ(s.median, 42);
  EXPECT_FALSE(s.noise_percent);
  EXPECT_FALSE(s.half_width);
  EXPECT_FALSE(s.interval.attained);
}

TEST(Statistics, NoiseNeedsThreeSamples) {
  const Summary two = *summarize(std::vector<double>{42, 42});
  EXPECT_FALSE(two.noise_percent || two.half_width);
  const Summary three = *summarize(std::vector<double>{99, 100, 101});
  EXPECT_NEAR(three.noise_percent.value(), 1.4826, 1e-9);
  EXPECT_NEAR(three.half_width.value(), 0.01, 1e-9);
}

// Ranks from the published tables of the binomial interval of the median at 95 %.
TEST(Statistics, IntervalRanks) {
  const auto ranks = [](int n) {
    std::vector<double> v;
    for (int i = 1; i <= n; ++i) {
      v.push_back(i);
    }
    return *median_interval(v, 0.95);
  };
  EXPECT_FALSE(ranks(5).attained);
  EXPECT_NEAR(ranks(5).coverage, 0.9375, 1e-12);
  for (const auto& [n, low] : std::vector<std::pair<int, int>>{
           {6, 1}, {8, 1}, {9, 2}, {10, 2}, {15, 4}, {20, 6}, {25, 8}, {30, 10}, {50, 18}, {100, 40}}) {
    const MedianInterval i = ranks(n);
    EXPECT_TRUE(i.attained) << n;
    EXPECT_DOUBLE_EQ(i.low, low) << n;
    EXPECT_DOUBLE_EQ(i.high, n + 1 - low) << n;
    EXPECT_GE(i.coverage, 0.95) << n;
  }
  EXPECT_TRUE(ranks(5000).attained);
  EXPECT_GE(ranks(5000).coverage, 0.95);
  EXPECT_LT(ranks(5000).coverage, 0.953);
}

TEST(Statistics, IntervalCoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(kStatisticsSeed);
  std::exponential_distribution<double> draw(1.0);
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> v(31);
    for (double& x : v) {
      x = draw(random);
    }
    const MedianInterval i = *median_interval(v, 0.95);
    covered += i.low <= std::log(2.0) && std::log(2.0) <= i.high ? 1 : 0;
  }
  EXPECT_GE(covered, kTrials * 0.94) << "seed " << kStatisticsSeed;
  EXPECT_LE(covered, kTrials * 0.995) << "seed " << kStatisticsSeed;
}

TEST(Statistics, OutliersDoNotMoveTheSummary) {
  std::vector<double> v(40, 100.0);
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] += static_cast<double>(i % 5) * 0.1;
  }
  v[7] = 5000;
  v[23] = 9000;
  const Summary s = *summarize(v);
  EXPECT_EQ(s.outliers, 2U);
  EXPECT_NEAR(s.median, 100.2, 0.11);
  EXPECT_LT(s.noise_percent, 0.3);
  EXPECT_TRUE(mark_outliers(v)[7]);
  std::vector<double> flat(10, 100.0);
  flat[3] = 104;
  EXPECT_EQ(summarize(flat)->outliers, 0U);
  flat[3] = 106;
  EXPECT_EQ(summarize(flat)->outliers, 1U);
}

TEST(Statistics, DriftIsSeenAndNoiseIsNotDrift) {
  std::mt19937_64 random(kStatisticsSeed);
  std::normal_distribution<double> noise(0, 1);
  std::vector<double> steady;
  std::vector<double> heating;
  for (int i = 0; i < 90; ++i) {
    steady.push_back(100 + noise(random));
    heating.push_back(100 + 15.0 * i / 90 + noise(random));
  }
  EXPECT_FALSE(detect_drift(steady, 0.02).detected) << "seed " << kStatisticsSeed;
  const Drift d = detect_drift(heating, 0.02);
  EXPECT_TRUE(d.detected) << "seed " << kStatisticsSeed;
  EXPECT_NEAR(d.percent, 10, 2);
  const std::vector<double> deciles = decile_means(heating);
  ASSERT_EQ(deciles.size(), 10U);
  EXPECT_GT(deciles.back(), deciles.front() + 10);
  EXPECT_FALSE(detect_drift(std::vector<double>{1, 2, 3}, 0.02).detected);
}

TEST(Statistics, PairsCancelCommonDrift) {
  std::mt19937_64 random(kStatisticsSeed);
  std::normal_distribution<double> noise(0, 0.002);
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 30; ++i) {
    const double level = 100 + 2.0 * i;  // both get slower together
    a.push_back(level * 0.97 * (1 + noise(random)));
    b.push_back(level * (1 + noise(random)));
  }
  const PairedResult r = *compare_paired(a, b, 0.01);
  EXPECT_NEAR(r.ratio, 0.97, 0.003) << "seed " << kStatisticsSeed;
  EXPECT_TRUE(r.a_faster);
  EXPECT_FALSE(r.b_faster);
  EXPECT_FALSE(compare_paired(a, b, 0.05)->a_faster);
  EXPECT_TRUE(compare_paired(b, a, 0.01)->b_faster);
  const std::span<const double> few(a.data(), 4);
  EXPECT_FALSE(compare_paired(few, b, 0.01)->a_faster);  // four rounds prove nothing
}

}  // namespace
}  // namespace cudabk
