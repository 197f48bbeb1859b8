#include "results/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "results/sample_results.h"
#include "results/shift.h"

namespace cudabk {
namespace {

using test::noisy_samples;
using test::sample_case;
using test::sample_run;

constexpr const char* kParams = "type=q4_K m=4096 n=1 k=4096";

ResultSet set_of(RunResult run) {
  ResultSet set;
  set.files.push_back({"x.json", std::move(run), "sha256:0"});
  return set;
}

// A case whose code differs from the baseline's: it can get any verdict.
CaseResult changed_case(const std::string& params, std::vector<double> samples) {
  CaseResult c = sample_case(params, std::move(samples));
  c.breakdown[0].code_hash = "sha256:01";
  return c;
}

CaseComparison compare_one(CaseResult a, CaseResult b, const CompareOptions& options = {}) {
  const Comparison comparison =
      compare_results(set_of(sample_run({std::move(a)})), set_of(sample_run({std::move(b)})), options);
  EXPECT_EQ(comparison.cases.size(), 1U);
  return comparison.cases.at(0);
}

TEST(Shift, FindsRatioIntervalAndSignificance) {
  const std::vector<double> a = noisy_samples(1000, 100, 1), b = noisy_samples(1050, 100, 2);
  const Shift shift = *estimate_shift(a, b, 0.99);
  EXPECT_NEAR(shift.ratio, 1.05, 0.007);
  EXPECT_LT(shift.low, shift.ratio);
  EXPECT_GT(shift.high, shift.ratio);
  EXPECT_LT(shift.p, 1e-10);
  EXPECT_GT(estimate_shift(a, noisy_samples(1000, 100, 3), 0.99)->p, 0.01);
}

// Reference values by hand: all nine differences of logs of {1,2,4} and {2,4,8} are 0, 1 or 2 or -1 or 3 doublings.
TEST(Shift, EqualsTheHodgesLehmannEstimateByHand) {
  const Shift shift = *estimate_shift(std::vector<double>{1, 2, 4}, std::vector<double>{2, 4, 8}, 0.95);
  EXPECT_NEAR(shift.ratio, 2, 1e-12);
  EXPECT_NEAR(shift.low, 0.5, 1e-12);  // with so few samples, the range
  EXPECT_NEAR(shift.high, 8, 1e-12);
}

TEST(Shift, OutliersHardlyMoveIt) {
  std::vector<double> a = noisy_samples(1000, 40, 1), b = noisy_samples(1000, 40, 2);
  b[0] = b[7] = b[23] = 50000;
  EXPECT_NEAR(estimate_shift(a, b, 0.99)->ratio, 1, 0.01);
}

// The interval covers the true ratio about as often as it says. Seeds 1 to 2000.
TEST(Shift, IntervalCoversTheTruth) {
  int covered = 0;
  constexpr int kTrials = 1000;
  for (uint64_t seed = 1; seed <= kTrials; ++seed) {
    const Shift s = *estimate_shift(noisy_samples(1000, 25, seed), noisy_samples(1020, 30, seed + kTrials), 0.95);
    covered += s.low <= 1.02 && 1.02 <= s.high ? 1 : 0;
  }
  EXPECT_GE(covered, 930);
  EXPECT_LE(covered, 975);
}

// Under no change, p below 0.05 comes about one time in twenty. Seeds 1 to 4000.
TEST(Shift, PValuesAreUniformWithoutAChange) {
  int low = 0;
  constexpr int kTrials = 2000;
  for (uint64_t seed = 1; seed <= kTrials; ++seed) {
    low += estimate_shift(noisy_samples(1000, 25, seed), noisy_samples(1000, 25, seed + kTrials), 0.95)->p < 0.05;
  }
  EXPECT_GE(low, 70);
  EXPECT_LE(low, 130);
}

TEST(Shift, TiesAndUselessSamplesDoNoHarm) {
  const std::vector<double> equal(30, 5.0);
  const Shift shift = *estimate_shift(equal, equal, 0.99);
  EXPECT_EQ(shift.ratio, 1);
  EXPECT_EQ(shift.p, 1);
  EXPECT_FALSE(estimate_shift(std::vector<double>{NAN, -1, 0, INFINITY, 3}, equal, 0.99));
  EXPECT_FALSE(estimate_shift({}, {}, 0.99));
}

TEST(Holm, EqualsTheValuesByHand) {
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected{0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
  }
  EXPECT_TRUE(holm_adjusted({}).empty());
}

TEST(BlockMedians, KeepOrderAndUseAllSamples) {
  std::vector<double> samples(100);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<double>(i);
  }
  EXPECT_EQ(block_medians(samples, 100), samples);
  EXPECT_EQ(block_medians(samples, 4), (std::vector<double>{12, 37, 62, 87}));
}

TEST(Compare, EveryVerdictOfMeasuredCases) {
  const CaseResult base = sample_case(kParams, noisy_samples(1000, 60, 1));
  EXPECT_EQ(compare_one(base, changed_case(kParams, noisy_samples(1000, 60, 2))).verdict, Verdict::kSame);
  EXPECT_EQ(compare_one(base, changed_case(kParams, noisy_samples(1050, 60, 3))).verdict, Verdict::kRegressed);
  EXPECT_EQ(compare_one(base, changed_case(kParams, noisy_samples(950, 60, 4))).verdict, Verdict::kImproved);
  EXPECT_EQ(compare_one(base, changed_case(kParams, noisy_samples(1020, 60, 5))).verdict, Verdict::kSame)
      << "significant, but smaller than the threshold";
  const CaseComparison noisy = compare_one(base, changed_case(kParams, noisy_samples(1050, 60, 6, 0.4)));
  EXPECT_EQ(noisy.verdict, Verdict::kInconclusive);
  EXPECT_EQ(noisy.reason, Reason::kNoise);
  const CaseComparison few = compare_one(base, changed_case(kParams, noisy_samples(1500, 19, 7)));
  EXPECT_EQ(few.verdict, Verdict::kInconclusive);
  EXPECT_EQ(few.reason, Reason::kFewSamples);
  EXPECT_EQ(few.message, "60 and 19 samples, 20 a side are needed");
}

TEST(Compare, IdenticalCodeCannotFail) {
  const CaseResult base = sample_case(kParams, noisy_samples(1000, 60, 1));
  const CaseResult slower = sample_case(kParams, noisy_samples(1100, 60, 2));
  const CaseComparison row = compare_one(base, slower);
  EXPECT_EQ(row.verdict, Verdict::kUnchangedCode);
  EXPECT_NE(row.message.find("identical kernels"), std::string::npos) << row.message;
  CompareOptions judged;
  judged.judge_unchanged = true;
  EXPECT_EQ(compare_one(base, slower, judged).verdict, Verdict::kRegressed);
  // A library call has no hash: nothing proves that it is the same.
  CaseResult a = base, b = slower;
  a.breakdown[0].code_hash = b.breakdown[0].code_hash = "";
  EXPECT_EQ(compare_one(a, b).verdict, Verdict::kRegressed);
  b = slower;
  b.breakdown[0].grid[0] *= 2;
  EXPECT_EQ(compare_one(base, b).verdict, Verdict::kRegressed) << "the same code in other launches";
}

TEST(Compare, ThresholdsMayDifferPerCase) {
  CompareOptions options;
  ASSERT_TRUE(options.thresholds.add_rules("# comment\n\nmul_mat .*n=1 .* 10%\n.* 0.01\n", "limits").ok());
  const CaseResult base = sample_case(kParams, noisy_samples(1000, 60, 1));
  EXPECT_EQ(compare_one(base, changed_case(kParams, noisy_samples(1050, 60, 3)), options).verdict, Verdict::kSame);
  const char* other = "type=q4_K m=4096 n=8 k=4096";
  EXPECT_EQ(compare_one(sample_case(other, noisy_samples(1000, 60, 1)), changed_case(other, noisy_samples(1022, 60, 3)),
                        options)
                .verdict,
            Verdict::kRegressed);
}

TEST(Thresholds, BadRulesAreNamedWithTheirLine) {
  for (const auto& [text, expected] : std::vector<std::pair<const char*, const char*>>{
           {"\nfoo\n", "limits:2: expected REGEX LIMIT"},
           {"foo 2x", "limits:1"},
           {"foo -1%", "limits:1"},
           {"f( 2%", "limits:1: 'f(' is no regular expression"},
       }) {
    Thresholds thresholds;
    const Status status = thresholds.add_rules(text, "limits");
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_NE(status.error().message.find(expected), std::string::npos) << status.error().message;
  }
  EXPECT_FALSE(Thresholds().add_file("/nonexistent").ok());
}

TEST(Compare, ASlowClockIsNoRegression) {
  const CaseResult base = sample_case(kParams, noisy_samples(1000, 60, 1));
  CaseResult slow = changed_case(kParams, noisy_samples(1000 * 1980.0 / 1755, 60, 2));
  slow.clocks_mhz = {1755, 1755};
  const CaseComparison row = compare_one(base, slow);
  EXPECT_EQ(row.verdict, Verdict::kSame);
  EXPECT_EQ(row.reason, Reason::kClock);
  EXPECT_NEAR(*row.cycles_change, 0, 0.01);
  EXPECT_NEAR(*row.change, 0.128, 0.01);
  // Faster only because of the clock, slower in cycles: no verdict.
  CaseResult hidden = changed_case(kParams, noisy_samples(1000 * 1980.0 / 2250, 60, 2));
  hidden.samples_ns = noisy_samples(940, 60, 5);
  hidden.clocks_mhz = {2250, 2250};
  EXPECT_EQ(compare_one(base, hidden).verdict, Verdict::kInconclusive);
  // A slow phase does not matter where there are enough samples at a common clock.
  std::vector<double> mixed = noisy_samples(1000 * 1980.0 / 1755, 40, 3), fast = noisy_samples(1000, 25, 4);
  mixed.insert(mixed.end(), fast.begin(), fast.end());
  CaseResult partly = changed_case(kParams, mixed);
  partly.clocks_mhz = {1755, 1980};
  partly.clock_samples = {40, 25};
  EXPECT_EQ(compare_one(base, partly).verdict, Verdict::kSame);
}

TEST(Compare, RepetitionsMustAgree) {
  CompareOptions options;
  const auto run_with = [](std::vector<double> medians, const char* code, uint64_t seed) {
    RunResult run = sample_run({});
    for (size_t i = 0; i < medians.size(); ++i) {
      run.cases.push_back(sample_case(kParams, noisy_samples(medians[i], 40, seed + i, 0.002)));
      run.cases.back().repetition = static_cast<int>(i);
      run.cases.back().breakdown[0].code_hash = code;
    }
    return run;
  };
  const ResultSet baseline = set_of(run_with({1000, 1060, 1000, 1060}, "sha256:0", 1));
  Comparison c = compare_results(baseline, set_of(run_with({1000, 1061, 1061, 1061}, "sha256:1", 10)), options);
  EXPECT_EQ(c.cases.at(0).baseline_samples, 160U);
  EXPECT_EQ(c.cases.at(0).verdict, Verdict::kInconclusive) << *c.cases[0].change;
  c = compare_results(baseline, set_of(run_with({1120, 1120, 1120, 1120}, "sha256:1", 10)), options);
  EXPECT_EQ(c.cases.at(0).verdict, Verdict::kRegressed);
}

TEST(Compare, AThrottledRowDoesNotFail) {
  CaseResult slower = changed_case(kParams, noisy_samples(1100, 60, 2));
  slower.flags = {"throttled: power"};
  const CaseComparison row = compare_one(sample_case(kParams, noisy_samples(1000, 60, 1)), slower);
  EXPECT_EQ(row.verdict, Verdict::kInconclusive);
  EXPECT_EQ(row.reason, Reason::kThrottled);
}

TEST(Compare, ManyCasesNeedStrongerEvidence) {
  // One weak change among 200: significant alone, not among many.
  RunResult a = sample_run({}), b = sample_run({});
  for (int i = 0; i < 200; ++i) {
    const std::string params = "type=q4_K m=" + std::to_string(i);
    const auto seed = static_cast<uint64_t>(i);
    a.cases.push_back(sample_case(params, noisy_samples(1000, 20, 1000 + seed, 0.04)));
    b.cases.push_back(changed_case(params, noisy_samples(i == 7 ? 1042 : 1000, 20, 2000 + seed, 0.04)));
  }
  const Comparison all = compare_results(set_of(a), set_of(b), {});
  const Comparison alone = compare_results(set_of(sample_run({a.cases[7]})), set_of(sample_run({b.cases[7]})), {});
  EXPECT_EQ(alone.cases[0].verdict, Verdict::kRegressed) << *alone.cases[0].p;
  EXPECT_EQ(all.count(Verdict::kRegressed), 0U);
  EXPECT_GT(*all.cases[7].p_adjusted, 100 * *all.cases[7].p);
}

}  // namespace
}  // namespace cudabk
