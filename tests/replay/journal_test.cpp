// Fits and simulations on a cut of a real journal and on damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "core/file.h"
#include "replay/refit.h"
#include "replay/simulate.h"
#include "tuning/family_set.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

std::string journal_text() {
  Result<std::string> text = read_file(std::string(CUDABK_TEST_DATA) + "/journal/h200-q4_K.jsonl");
  EXPECT_TRUE(text.ok());
  return text.ok() ? std::move(text).value() : "";
}

TuneJournal real_journal() {
  Result<TuneJournal> journal = read_tune_journal(journal_text(), "h200.jsonl", "");
  EXPECT_TRUE(journal.ok()) << (journal.ok() ? "" : journal.error().message);
  return journal.ok() ? std::move(journal).value() : TuneJournal();
}

TEST(ReplayJournal, IsToldFromAResult) {
  EXPECT_TRUE(is_tune_journal(journal_text()));
  EXPECT_TRUE(is_tune_journal("{\"begin\": 1}\n"));
  EXPECT_FALSE(is_tune_journal("{\n  \"schema\": \"cudabk-result/1\"\n"));
  EXPECT_FALSE(is_tune_journal(""));
}

TEST(ReplayJournal, ReadsEveryTimingOfARealOne) {
  const TuneJournal journal = real_journal();
  EXPECT_EQ(journal.device.name, "NVIDIA H200");
  EXPECT_EQ(journal.device.sm_count, 132);
  EXPECT_EQ(journal.op, "mul_mat");
  EXPECT_EQ(journal.entries, 527U);
  EXPECT_EQ(journal.skipped_lines, 0U);
  ASSERT_TRUE(journal.keys.contains("q4_K"));
  for (const auto& [at, shape] : journal.keys.at("q4_K")) {
    EXPECT_TRUE(shape.timings.contains(shape.fallback)) << shape_label(at);
    EXPECT_GT(default_ns(shape), 1000);
  }
}

TEST(ReplayRefit, ALooserBoundNeedsNoMoreRulesAndKeepsItsPromise) {
  const TuneJournal journal = real_journal();
  size_t last = SIZE_MAX;
  for (const double bound : {0.01, 0.03, 0.05, 0.1, 0.3}) {
    const Refit fit = refit_profile(journal, {bound, 0.01, "2026-01-31"});
    ASSERT_EQ(fit.keys.size(), 1U);
    EXPECT_LE(fit.keys[0].new_rules, last) << bound;
    EXPECT_LE(fit.keys[0].fit.regret_max, bound + 1e-9);
    EXPECT_LE(fit.keys[0].worst_ratio, 1.01 + 1e-9);  // nowhere slower than the default by more than the margin
    last = fit.keys[0].new_rules;
  }
  EXPECT_LT(last, refit_profile(journal, {0.01, 0.01, ""}).keys[0].new_rules);
}

TEST(ReplayRefit, TheProfileCanBeReadAndUsed) {
  const TuneJournal journal = real_journal();
  const Refit fit = refit_profile(journal, {0.03, 0.01, "2026-01-31"});
  const Result<Profile> read = parse_profile(profile_to_json(fit.profile), "refit", family_set());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->device.name, "NVIDIA H200");
  const Table& table = read->tables.at("mul_mat").at("q4_K");
  ASSERT_GT(fit.keys[0].new_rules, 0U);
  size_t with_code = 0;
  for (size_t i = 0; i < fit.keys[0].new_rules; ++i) {
    EXPECT_NE(table.rules[i].evidence.find("against the default"), std::string::npos);
    with_code += table.rules[i].code.empty() ? 0 : 1;
  }
  EXPECT_GT(with_code, 0U);
  EXPECT_EQ(Json::parse(refit_json({fit}))["refit"][0]["keys"][0]["rules"].size(), fit.keys[0].new_rules);
}

SimulateOptions simulation(Strategy strategy, size_t top = 4) {
  SimulateOptions options;
  options.search.strategy = strategy;
  options.search.top = top;
  options.rounds = 2;
  options.seed = 7;
  return options;
}

TEST(ReplaySimulation, HalvingNeedsFewerSamplesAndBothFindNearlyTheBest) {
  const TuneJournal journal = real_journal();
  const Result<Simulation> halving = simulate_search(journal, simulation(Strategy::kHalving));
  const Result<Simulation> all = simulate_search(journal, simulation(Strategy::kExhaustive));
  ASSERT_TRUE(halving.ok() && all.ok());
  std::printf("seed 7: halving %.0f samples, exhaustive %.0f\n", halving->samples, all->samples);
  EXPECT_LT(halving->samples, 0.8 * all->samples);
  for (const Simulation* s : {&*halving, &*all}) {
    EXPECT_GT(s->shapes, 10U);
    EXPECT_LT(s->regret_p95, 0.06);
    EXPECT_LE(s->regret_median, s->regret_p95);
    EXPECT_LT(s->regret_p95, s->default_regret_max);
  }
  EXPECT_NE(simulation_text({*halving, *all}).find("exhaustive"), std::string::npos);
  EXPECT_EQ(Json::parse(simulation_json({*halving}))["simulation"][0]["finalists"], 4);
}

TEST(ReplaySimulation, ASeedGivesTheSameNumbers) {
  const TuneJournal journal = real_journal();
  const Result<Simulation> a = simulate_search(journal, simulation(Strategy::kHalving, 2));
  const Result<Simulation> b = simulate_search(journal, simulation(Strategy::kHalving, 2));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->samples, b->samples);
  EXPECT_EQ(a->regret_p95, b->regret_p95);
}

TEST(ReplayJournal, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) {
    const Result<TuneJournal> journal = read_tune_journal(text, "x.jsonl", "");
    return journal.ok() ? "" : journal.error().message;
  };
  EXPECT_NE(message("").find("no timing"), std::string::npos);
  EXPECT_NE(message("{]\nnull\n").find("2 lines"), std::string::npos);
  const std::string text = journal_text();
  std::string line = text.substr(0, text.find('\n') + 1), other = line;
  other.replace(other.find("H200"), 4, "H100");
  EXPECT_NE(message(line + other).find("several devices"), std::string::npos);
  std::string unknown = line;
  unknown.replace(unknown.find("sm_90a"), 6, "sm_999");
  EXPECT_NE(message(unknown).find("sm_999"), std::string::npos);
}

TEST(ReplayJournal, ACutLineIsLeftOut) {
  const std::string text = journal_text();
  const Result<TuneJournal> journal = read_tune_journal(text.substr(0, text.size() - 40), "x.jsonl", "");
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->skipped_lines, 1U);
  EXPECT_EQ(journal->entries, 526U);
}

TEST(ReplayJournal, DamagedOnesNeverCrashAnything) {
  std::printf("seed 20260201\n");
  std::mt19937_64 random(20260201);
  const std::string whole = journal_text();
  std::string text = whole.substr(0, whole.find('\n', 20000) + 1);  // a few dozen lines
  const std::vector<std::string> pieces = {"0",       "-1",   "1e308",      "1e-308", "9223372036854775807",
                                           "null",    "\"\"", "{}",         "[[[",    "\n",
                                           "\"m\":1", "nan",  "2147483648", "}",      "\\"};
  size_t read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = text;
    for (uint64_t edits = 1 + random() % 6; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          damaged.replace(at, random() % 12, pieces[random() % pieces.size()]);
          break;
        default: {  // a number elsewhere in the line
          const size_t digit = damaged.find_first_of("0123456789", at);
          if (digit != std::string::npos) {
            damaged.replace(digit, 1, pieces[random() % pieces.size()]);
          }
        }
      }
    }
    const Result<TuneJournal> journal = read_tune_journal(damaged, "damaged", "");
    if (journal.ok()) {
      ++read;
      const Refit fit = refit_profile(*journal, {0.03, 0.01, ""});
      EXPECT_FALSE(Json::parse(refit_json({fit}), nullptr, false).is_discarded());
      SimulateOptions options = simulation(Strategy::kHalving);
      options.rounds = 1;
      const Result<Simulation> simulated = simulate_search(*journal, options);
      EXPECT_TRUE(simulated.ok() || !simulated.error().message.empty());
    }
  }
  EXPECT_GT(read, 50U);
}

}  // namespace
}  // namespace cudabk::test
