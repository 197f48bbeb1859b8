#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "synthetic.h"

namespace cudabk {
namespace {

using test::crossing_ns;
using test::Machine;
using test::SyntheticFactory;
using test::tune_options;

const Rule* rule_at(const Table& table, int64_t n, int64_t m = 64, int64_t k = 256) {
  const auto choice =
      choose({"mul_mat", "q4_K", {{"m", m}, {"n", n}, {"k", k}, {"batch", 1}}}, DeviceInfo{}, table, test::families());
  return choice.ok() && choice->rule >= 0 ? &table.rules[static_cast<size_t>(choice->rule)] : nullptr;
}

Result<TuneReport> run(Machine& machine, const TuneOptions& options, std::string fallback = "any") {
  SyntheticFactory factory(machine, std::move(fallback));
  Journal journal;
  return tune(factory, factory.profile(), journal, options);
}

TEST(Tune, FindsTheExactSwitchPointByMeasuringBetweenTheShapes) {
  Machine machine;
  machine.ns = crossing_ns;
  TuneOptions options = tune_options({1, 2, 4, 8, 16, 32});
  options.regret = 0.005;
  const auto report = run(machine, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->keys.size(), 1U);
  const Table& table = report->profile.tables.at("mul_mat").at("q4_K");
  EXPECT_EQ(report->keys[0].new_rules, 2U);
  for (int64_t n = 1; n <= 32; ++n) {
    ASSERT_NE(rule_at(table, n), nullptr);
    EXPECT_EQ(rule_at(table, n)->use, n <= 5 ? "vec" : "tile") << n;
  }
  EXPECT_EQ(rule_at(table, 3)->config, (Config{{"warps", 2}}));
  EXPECT_EQ(rule_at(table, 9)->config, (Config{{"size", 32}}));
  EXPECT_LE(report->keys[0].worst_ratio, 1.0);
}

TEST(Tune, OutsideTheMeasuredRangeTheDefaultStays) {
  Machine machine;
  machine.ns = crossing_ns;
  const auto report = run(machine, tune_options({2, 4, 8}));
  ASSERT_TRUE(report.ok());
  const Table& table = report->profile.tables.at("mul_mat").at("q4_K");
  EXPECT_EQ(rule_at(table, 1)->use, "any");
  EXPECT_EQ(rule_at(table, 9)->use, "any");
  EXPECT_EQ(rule_at(table, 4, 65)->use, "any");
  EXPECT_TRUE(table.rules.back().when.empty());
  // Products in batches were not measured.
  const auto batched = choose({"mul_mat", "q4_K", {{"m", 64}, {"n", 4}, {"k", 256}, {"batch", 2}}}, DeviceInfo{}, table,
                              test::families());
  EXPECT_EQ(batched->family, "any");
}

TEST(Tune, TheWrittenProfileParsesAndStatesItsEvidence) {
  Machine machine;
  machine.ns = crossing_ns;
  const auto report = run(machine, tune_options({1, 8}));
  ASSERT_TRUE(report.ok());
  FamilySet set;
  set.by_op["mul_mat"] = test::families();
  const std::string text = profile_to_json(report->profile);
  const auto back = parse_profile(text, "x", set);
  ASSERT_TRUE(back.ok()) << back.error().message << text;
  EXPECT_EQ(back->device.name, "synthetic");
  EXPECT_TRUE(back->evidence.contains("regret_median_percent"));
  EXPECT_TRUE(back->evidence.contains("mul_mat q4_K"));
  const Rule& rule = back->tables.at("mul_mat").at("q4_K").rules[0];
  EXPECT_NE(rule.evidence.find("2026-01-31"), std::string::npos) << rule.evidence;
  EXPECT_TRUE(rule.code.starts_with("sha256:"));
}

TEST(Tune, WithinNoiseTheDefaultKeepsItsPlaceRunAfterRun) {
  for (int run_number = 0; run_number < 5; ++run_number) {
    Machine machine;
    machine.noise = 0.02;
    machine.random.seed(100 + static_cast<uint64_t>(run_number));
    machine.ns = [](const Candidate& c, const TuneShape&) { return c.family == "vec" ? 995.0 : 1000.0; };  // 0.5 %
    const auto report = run(machine, tune_options({1, 4, 16}), "tile");
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->keys[0].new_rules, 0U) << "seed " << 100 + run_number;
  }
}

TEST(Tune, AWrongOrBrokenCandidateNeverWinsAndTheRunGoesOn) {
  Machine machine;
  machine.ns = crossing_ns;
  const Candidate best{"vec", {{"warps", 2}}}, second{"tile", {{"size", 32}}};
  machine.broken.emplace(best, Error{ErrorKind::kWrongOutput, "NMSE 0.5"});
  machine.broken.emplace(second, Error{ErrorKind::kInternal, "launch failed"});
  std::vector<std::string> notices;
  TuneOptions options = tune_options({1, 2, 8});
  options.notice = [&](std::string_view line) { notices.emplace_back(line); };
  const auto report = run(machine, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const PointResult& p : report->keys[0].points) {
    for (const auto& e : p.entries) {
      EXPECT_FALSE(e.candidate == best || e.candidate == second);
    }
  }
  const Table& table = report->profile.tables.at("mul_mat").at("q4_K");
  EXPECT_EQ(rule_at(table, 1)->use, "vec");
  EXPECT_NE(rule_at(table, 1)->config, best.config);
  ASSERT_FALSE(report->quarantined.empty());
  EXPECT_NE(notices[0].find("quarantined"), std::string::npos);
}

TEST(Tune, AWrongDefaultEndsTheRun) {
  Machine machine;
  machine.ns = crossing_ns;
  machine.broken.emplace(Candidate{"any", {}}, Error{ErrorKind::kWrongOutput, "NMSE 0.5"});
  const auto report = run(machine, tune_options({1}));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kWrongOutput);
}

TEST(Tune, ADeviceThatIsGoneEndsTheRunAndBlamesOneCandidate) {
  Machine machine;
  machine.ns = crossing_ns;
  machine.deadly = Candidate{"vec", {{"warps", 1}}};
  SyntheticFactory factory(machine);
  Journal journal;
  const auto report = tune(factory, factory.profile(), journal, tune_options({1, 2, 4, 8}));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kInternal);
  EXPECT_NE(report.error().message.find("vec warps=1"), std::string::npos) << report.error().message;
  // A new process with the same journal leaves that one out and finishes.
  machine.dead = false;
  const auto again = tune(factory, factory.profile(), journal, tune_options({1, 2, 4, 8}));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->quarantined.size(), 1U);
}

class TuneJournal : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() / ("cudabk_tune_" + std::to_string(getpid()) + "_" +
                                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  Result<TuneReport> run(Machine& machine, const TuneOptions& options) {
    SyntheticFactory factory(machine);
    CUDABK_ASSIGN(Journal journal, Journal::open(dir_ / "j.jsonl", false));
    return tune(factory, factory.profile(), journal, options);
  }
  std::filesystem::path dir_;
};

TEST_F(TuneJournal, AKilledRunGoesOnWhereItWas) {
  const TuneOptions options = tune_options({1, 2, 4, 8, 16});
  Machine whole;
  whole.ns = crossing_ns;
  ASSERT_TRUE(run(whole, options).ok());
  std::filesystem::remove_all(dir_);

  Machine killed;
  killed.ns = crossing_ns;
  killed.die_after = whole.samples / 2;
  EXPECT_THROW((void)run(killed, options), test::Killed);
  Machine resumed;
  resumed.ns = crossing_ns;
  const auto report = run(resumed, options);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->reused, 0);
  EXPECT_LT(resumed.samples, whole.samples * 2 / 3);
  EXPECT_GT(resumed.samples, 0);

  Machine third;
  third.ns = crossing_ns;
  const auto again = run(third, options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(third.samples, 0) << "everything is in the journal";
  EXPECT_EQ(profile_to_json(again->profile).substr(0, 200), profile_to_json(report->profile).substr(0, 200));
  EXPECT_EQ(again->keys[0].new_rules, report->keys[0].new_rules);
}

TEST_F(TuneJournal, ChangedCodeIsMeasuredAgain) {
  const TuneOptions options = tune_options({1, 8});
  Machine machine;
  machine.ns = crossing_ns;
  ASSERT_TRUE(run(machine, options).ok());
  const int64_t samples = machine.samples;
  machine.samples = 0;
  machine.code = "2";
  ASSERT_TRUE(run(machine, options).ok());
  EXPECT_GT(machine.samples, samples / 2);
}

TEST_F(TuneJournal, QuarantineIsRememberedAcrossRuns) {
  const TuneOptions options = tune_options({1});
  Machine machine;
  machine.ns = crossing_ns;
  const Candidate wrong{"vec", {{"warps", 2}}};
  machine.broken.emplace(wrong, Error{ErrorKind::kWrongOutput, "wrong"});
  ASSERT_TRUE(run(machine, options).ok());
  machine.broken.clear();  // even if it would pass now: the same code was wrong once
  const auto report = run(machine, options);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->quarantined.size(), 1U);
  EXPECT_EQ(report->quarantined[0].candidate, wrong);
}

TEST(TuneBudget, EndsInTimeWithWhatItHas) {
  Machine machine;
  machine.ns = crossing_ns;
  double now = 0;
  TuneOptions options = tune_options({1, 2, 4, 8, 16, 32, 64});
  options.budget_s = 60;
  options.sampler.now_s = [&] { return now += 1; };
  std::vector<std::string> lines;
  options.progress = [&](std::string_view line) { lines.emplace_back(line); };
  const auto report = run(machine, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->complete);
  EXPECT_LT(report->keys[0].points.size(), options.shapes.size());
  EXPECT_NE(lines.back().find("left"), std::string::npos) << lines.back();
}

TEST(TuneBudget, NoTimeAtAllIsSaid) {
  Machine machine;
  machine.ns = crossing_ns;
  TuneOptions options = tune_options({1});
  options.budget_s = 0.5;
  double now = 0;
  options.sampler.now_s = [&] { return now += 1; };
  const auto report = run(machine, options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kNothing);
}

TEST(TuneInterrupt, KeepsWhatWasMeasured) {
  Machine machine;
  std::atomic<bool> interrupted{false};
  machine.ns = [&](const Candidate& c, const TuneShape& shape) {
    interrupted = test::extent(shape, "n") >= 8;
    return crossing_ns(c, shape);
  };
  TuneOptions options = tune_options({1, 2, 4, 8, 16});
  options.sampler.interrupted = &interrupted;
  const auto report = run(machine, options);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->complete);
  EXPECT_EQ(report->keys[0].points.size(), 3U);
}

TEST(TuneInterrupt, ACandidateThatIsCutShortIsNotToBlame) {
  for (const int64_t after : {5, 60}) {  // in the first shape, and in a later one
    Machine machine;
    std::atomic<bool> interrupted{false};
    machine.ns = [&](const Candidate& c, const TuneShape& shape) {
      interrupted = machine.interrupted = machine.samples > after;
      return crossing_ns(c, shape);
    };
    TuneOptions options = tune_options({1, 2, 4, 8, 16});
    options.sampler.interrupted = &interrupted;
    const auto report = run(machine, options);
    if (after == 5) {
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.error().kind, ErrorKind::kInterrupted) << report.error().message;
      continue;
    }
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->complete);
    EXPECT_TRUE(report->quarantined.empty());
  }
}

}  // namespace
}  // namespace cudabk
