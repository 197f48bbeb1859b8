#include "replay/statistics.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "replay/verdicts.h"
#include "results/sample_results.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

ResultSet set_of(std::vector<CaseResult> cases) {
  ResultSet set;
  set.files.push_back({"run.json", sample_run(std::move(cases)), "sha256:00"});
  return set;
}

CaseResult timed(const std::string& params, double ns, uint64_t seed, const std::string& code) {
  CaseResult c = sample_case(params, noisy_samples(ns, 100, seed, 0.004));
  c.breakdown[0].code_hash = code;
  return c;
}

TEST(ReplayStatistics, SameSettingsGiveTheRecordedNumbers) {
  const RunResult run = sample_run({sample_case("type=q4_K n=1", noisy_samples(1000, 80, 3))});
  std::vector<ReplayedCase> cases;
  const RunResult replayed = replay_statistics(run, {}, &cases);
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].recorded->median, cases[0].replayed->median);
  EXPECT_EQ(cases[0].recorded->interval.low, cases[0].replayed->interval.low);
  EXPECT_EQ(replayed.cases[0].samples_ns, run.cases[0].samples_ns);
}

TEST(ReplayStatistics, HigherConfidenceIsWider) {
  const RunResult run = sample_run({sample_case("type=q4_K n=1", noisy_samples(1000, 80, 3))});
  std::vector<ReplayedCase> usual, sure;
  replay_statistics(run, {.confidence = 0.9}, &usual);
  replay_statistics(run, {.confidence = 0.999}, &sure);
  EXPECT_LT(usual[0].replayed->half_width, sure[0].replayed->half_width);
}

TEST(ReplayStatistics, FirstSamplesOnlyAndTheirFlags) {
  RunResult run = sample_run({sample_case("type=q4_K n=1", noisy_samples(1000, 80, 3, 0.05))});
  run.cases[0].flags = {"throttled", "imprecise"};
  const RunResult few = replay_statistics(run, {.precision = 0.001, .min_samples = 20, .first = 10});
  EXPECT_EQ(few.cases[0].samples_ns.size(), 10U);
  EXPECT_EQ(few.cases[0].flags, (std::vector<std::string>{"throttled", "few samples", "imprecise"}));
  const RunResult loose = replay_statistics(run, {.precision = 0.5});
  EXPECT_EQ(loose.cases[0].flags, std::vector<std::string>{"throttled"});
}

TEST(ReplayStatistics, OneSampleHasNoWidth) {
  RunResult run = sample_run({sample_case("type=q4_K n=1", noisy_samples(1000, 80, 3))});
  std::vector<ReplayedCase> cases;
  const RunResult one = replay_statistics(run, {.min_samples = 2, .first = 1}, &cases);
  EXPECT_EQ(one.cases[0].flags, (std::vector<std::string>{"few samples", "imprecise"}));
  EXPECT_FALSE(cases[0].replayed->half_width);
  EXPECT_EQ(statistics_text(cases, {}).find("0.00 %"), std::string::npos) << statistics_text(cases, {});
  EXPECT_NE(statistics_json(cases, {}).find("\"half_width\": null"), std::string::npos) << statistics_json(cases, {});
}

TEST(ReplayStatistics, SaysHowManySamplesWereEnough) {
  const RunResult run = sample_run({sample_case("type=q4_K n=1", noisy_samples(1000, 400, 3, 0.02))});
  std::vector<ReplayedCase> loose, tight, never;
  replay_statistics(run, {.precision = 0.01}, &loose);
  replay_statistics(run, {.precision = 0.004}, &tight);
  replay_statistics(run, {.precision = 0.0001}, &never);
  ASSERT_TRUE(loose[0].enough && tight[0].enough);
  EXPECT_LT(*loose[0].enough, *tight[0].enough);
  EXPECT_FALSE(never[0].enough);
}

TEST(ReplayStatistics, RowsWithoutSamplesStayAsTheyAre) {
  CaseResult failed = sample_case("type=q4_K n=1", {});
  failed.status = CaseStatus::kWrong;
  failed.summary.reset();
  std::vector<ReplayedCase> cases;
  const RunResult replayed = replay_statistics(sample_run({failed}), {}, &cases);
  EXPECT_TRUE(cases.empty());
  EXPECT_EQ(replayed.cases[0].flags, failed.flags);
}

TEST(ReplayVerdicts, TheThresholdDecides) {
  const ResultSet before =
      set_of({timed("type=q4_K n=1", 1000, 1, "sha256:a"), timed("type=q4_K n=8", 2000, 2, "sha256:a")});
  const ResultSet after =
      set_of({timed("type=q4_K n=1", 1040, 3, "sha256:b"), timed("type=q4_K n=8", 2000, 4, "sha256:b")});
  const auto verdicts = replay_verdicts(before, after, {}, {0.01, 0.03, 0.08});
  ASSERT_EQ(verdicts.size(), 3U);
  EXPECT_EQ(verdicts[0].comparison.count(Verdict::kRegressed), 1U);
  EXPECT_EQ(verdicts[1].comparison.count(Verdict::kRegressed), 1U);
  EXPECT_EQ(verdicts[2].comparison.count(Verdict::kRegressed), 0U);
  EXPECT_EQ(verdicts[2].comparison.count(Verdict::kSame), 2U);
  const std::string text = verdicts_text(verdicts);
  EXPECT_NE(text.find("n=1"), std::string::npos);
  EXPECT_EQ(text.find("n=8"), std::string::npos);  // the same at every threshold
  const Json json = Json::parse(verdicts_json(verdicts));
  EXPECT_EQ(json["verdicts"][0]["cases"][0]["verdict"], "regressed");
}

TEST(ReplayVerdicts, FewerSamplesAreNoVerdict) {
  const ResultSet before = set_of({timed("type=q4_K n=1", 1000, 1, "sha256:a")});
  const ResultSet after = set_of({timed("type=q4_K n=1", 1100, 3, "sha256:b")});
  ReplayStatistics few;
  few.first = 8;
  const auto verdicts = replay_verdicts(shortened(before, few), shortened(after, few), {}, {0.03});
  EXPECT_EQ(verdicts[0].comparison.count(Verdict::kInconclusive), 1U);
}

}  // namespace
}  // namespace cudabk::test
