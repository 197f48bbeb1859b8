#include <gtest/gtest.h>

#include <cmath>

#include "tuning/fit.h"

namespace cudabk {
namespace {

const double kNone = std::nan("");

FitPoint point(std::vector<int64_t> at, std::vector<double> ns) {
  FitPoint p{std::move(at), std::move(ns), {}};
  for (const double t : p.ns) {
    p.confirmed.push_back(t < p.ns[0] * 0.99);
  }
  return p;
}

FitOptions by_n() {
  FitOptions options;
  options.dims = {"n"};
  return options;
}

TEST(Fit, NothingFasterMeansNoRules) {
  const Fit fit = fit_table({point({1}, {10, 11, 12}), point({2}, {10, 10.05, 12})}, by_n());
  EXPECT_TRUE(fit.rules.empty());
  EXPECT_EQ(fit.regret_max, 0);
}

TEST(Fit, OneCandidateForAllIsOneRuleOverTheMeasuredRange) {
  const Fit fit = fit_table({point({1}, {10, 5}), point({8}, {10, 5}), point({64}, {10, 5})}, by_n());
  ASSERT_EQ(fit.rules.size(), 1U);
  EXPECT_EQ(fit.rules[0].box, (std::vector<Interval>{{1, 64}}));
  EXPECT_EQ(fit.rules[0].candidate, 1);
  EXPECT_DOUBLE_EQ(fit.default_regret_max, 1.0);
}

TEST(Fit, TheSwitchPointIsExactWhereEveryValueWasMeasured) {
  std::vector<FitPoint> points;
  for (int64_t n = 1; n <= 16; ++n) {
    const auto x = static_cast<double>(n);
    points.push_back(point({n}, {1000, 100 + 40 * x, 300 + 5 * x}));
  }
  FitOptions strict = by_n();
  strict.regret = 0;  // 5: 300 against 325; 6: 340 against 330
  const Fit fit = fit_table(points, strict);
  ASSERT_EQ(fit.rules.size(), 2U);
  EXPECT_EQ(fit.rules[0].box[0], (Interval{1, 5}));
  EXPECT_EQ(fit.rules[0].candidate, 1);
  EXPECT_EQ(fit.rules[1].box[0], (Interval{6, 16}));
  EXPECT_EQ(fit.rules[1].candidate, 2);
  EXPECT_EQ(fit.regret_max, 0);
}

TEST(Fit, AGapBelongsToTheUpperSide) {
  const Fit fit = fit_table({point({8}, {10, 5, 20}), point({16}, {10, 20, 5})}, by_n());
  ASSERT_EQ(fit.rules.size(), 2U);
  EXPECT_EQ(fit.rules[0].box[0], (Interval{8, 8}));
  EXPECT_EQ(fit.rules[1].box[0], (Interval{9, 16}));
}

TEST(Fit, RegretBuysASmallerTableAndNoMore) {
  const std::vector<FitPoint> points = {point({1}, {10, 5, 5.1}), point({2}, {10, 8, 5}), point({3}, {10, 5, 5.12})};
  FitOptions options = by_n();
  options.regret = 0.03;
  EXPECT_EQ(fit_table(points, options).rules.size(), 1U);  // candidate 2: 2.4 % at most
  EXPECT_LE(fit_table(points, options).regret_max, 0.03);
  options.regret = 0.01;
  EXPECT_EQ(fit_table(points, options).rules.size(), 3U);
}

TEST(Fit, NoiseTiesKeepTheDefault) {
  // Candidate 1 is a little faster everywhere, but was confirmed nowhere.
  std::vector<FitPoint> points = {point({1}, {100, 99.5}), point({2}, {100, 96})};
  points[1].confirmed[1] = false;
  EXPECT_TRUE(fit_table(points, by_n()).rules.empty());
  // At n = 2 both are equal: the rule for n = 1 does not grow over it.
  const Fit fit = fit_table({point({1}, {100, 50}), point({2}, {100, 100})}, by_n());
  ASSERT_EQ(fit.rules.size(), 1U);
  EXPECT_EQ(fit.rules[0].box[0], (Interval{1, 1}));
}

TEST(Fit, ARuleIsNeverSlowerThanTheDefaultAnywhereInside) {
  // Within the regret bound candidate 1 could serve all three; at n = 2 it would lose 2 % against the default.
  const std::vector<FitPoint> points = {point({1}, {100, 50}), point({2}, {100, 102}), point({3}, {100, 50})};
  FitOptions options = by_n();
  options.regret = 0.5;
  options.tie = 0.01;
  const Fit fit = fit_table(points, options);
  EXPECT_EQ(fit.rules.size(), 2U);
  EXPECT_EQ(fitted_choice(fit, {1}), 1);
  EXPECT_EQ(fitted_choice(fit, {2}), 0);
  EXPECT_EQ(fitted_choice(fit, {3}), 1);
}

TEST(Fit, SplitsByOtherDimensionsWhereColumnsDoNotDecide) {
  FitOptions options;
  options.dims = {"n", "m"};
  std::vector<FitPoint> points;
  for (const int64_t n : {1, 2, 4}) {
    points.push_back(point({n, 1024}, {10, 5, 9}));
    points.push_back(point({n, 4096}, {10, 9, 5}));
  }
  const Fit fit = fit_table(points, options);
  ASSERT_EQ(fit.rules.size(), 2U);
  EXPECT_EQ(fit.rules[0].box, (std::vector<Interval>{{1, 4}, {1024, 1024}}));
  EXPECT_EQ(fit.rules[1].box, (std::vector<Interval>{{1, 4}, {1025, 4096}}));
}

TEST(Fit, UnmeasuredCandidatesAreNotUsed) {
  const Fit fit = fit_table({point({1}, {10, 5, kNone}), point({2}, {10, kNone, 5})}, by_n());
  EXPECT_EQ(fitted_choice(fit, {1}), 1);
  EXPECT_EQ(fitted_choice(fit, {2}), 2);
  EXPECT_EQ(fitted_choice(fit, {3}), 0);
  EXPECT_EQ(fitted_choice(fit, {0}), 0);
}

TEST(Fit, NoPointsNoRules) { EXPECT_TRUE(fit_table({}, by_n()).rules.empty()); }

}  // namespace
}  // namespace cudabk
