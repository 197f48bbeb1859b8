#include <gtest/gtest.h>

#include "families.h"
#include "ops/mul_mat_families.h"

namespace cudabk {
namespace {

using test::device;
using test::families;
using test::problem;

Rule rule(std::string use, std::vector<std::pair<std::string, Interval>> when = {}, Config config = {}) {
  Rule r;
  r.use = std::move(use);
  r.when = std::move(when);
  r.config = std::move(config);
  return r;
}

TEST(Choose, IntervalsAreInclusiveOnBothSides) {
  const Table table{{rule("vec", {{"n", {2, 4}}}), rule("any")}};
  for (const auto& [n, use] :
       std::vector<std::pair<int64_t, std::string>>{{1, "any"}, {2, "vec"}, {4, "vec"}, {5, "any"}}) {
    const auto choice = choose(problem(n), device(), table, families());
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->family, use) << "n = " << n;
  }
}

TEST(Choose, EveryIntervalOfARuleMustHold) {
  const Table table{{rule("tile", {{"n", {1, 100}}, {"k", {8192, INT64_MAX}}}), rule("any")}};
  EXPECT_EQ(choose(problem(10, 4096, 8192), device(), table, families())->family, "tile");
  EXPECT_EQ(choose(problem(10, 4096, 8191), device(), table, families())->family, "any");
}

TEST(Choose, TheFirstMatchWins) {
  const Table table{{rule("tile", {{"n", {1, 10}}}, {{"tile_m", 128}}), rule("tile", {{"n", {1, 10}}}), rule("any")}};
  const auto choice = choose(problem(3), device(), table, families());
  EXPECT_EQ(choice->rule, 0);
  EXPECT_EQ(choice->config.at("tile_m"), 128);
}

TEST(Choose, AnInapplicableRuleFallsThroughWithItsReason) {
  const Table table{{rule("vec"), rule("tile"), rule("any")}};
  const auto choice = choose(problem(9), device("old", "sm_75", 75, 40), table, families());
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->family, "any");
  EXPECT_EQ(choice->rule, 2);
  ASSERT_EQ(choice->passed_over.size(), 2U);
  EXPECT_EQ(choice->passed_over[0].second, "more than 8 columns");
  EXPECT_EQ(choice->passed_over[1].second, "needs sm_80");
}

TEST(Choose, EveryParameterHasAValue) {
  const Table table{{rule("vec", {}, {{"rows", 2}})}};
  const auto choice = choose(problem(1), device(), table, families());
  EXPECT_EQ(choice->config, (Config{{"warps", 4}, {"rows", 2}}));
}

TEST(Choose, WithoutATableTheFirstApplicableFamilyRuns) {
  EXPECT_EQ(choose(problem(1), device(), {}, families())->family, "vec");
  const auto choice = choose(problem(100), device(), {}, families());
  EXPECT_EQ(choice->family, "tile");
  EXPECT_EQ(choice->rule, -1);
  EXPECT_EQ(choice->config, (Config{{"tile_m", 64}}));
}

TEST(Choose, AnUnknownFamilyInATableIsPassedOver) {
  const Table table{{rule("gone"), rule("any")}};
  EXPECT_EQ(choose(problem(1), device(), table, families())->family, "any");
}

TEST(Choose, NothingApplicableIsAnErrorWithEveryReason) {
  const std::vector<Family> only = {families()[0]};
  const auto choice = choose(problem(9), device(), {}, only);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(choice.error().message.find("more than 8 columns"), std::string::npos);
}

TEST(Choose, EveryProductHasAFamilyAtAnyColumnCountOnAnyArchitecture) {
  for (const char* key : {"f32", "f16", "bf16", "q4_0", "q8_0", "q4_K", "q6_K"}) {
    for (const int cc : {75, 80, 90, 120}) {
      for (const int64_t n : {1, 8, 9, 64, 65, 4096}) {
        for (const int64_t batch : {1, 6}) {
          const Problem p{"mul_mat", key, {{"m", 64}, {"n", n}, {"k", 256}, {"batch", batch}, {"f32_precision", 1}}};
          EXPECT_TRUE(choose(p, device("d", "sm_80", cc, 1), {}, mul_mat_families()).ok()) << p.text();
        }
      }
    }
  }
}

}  // namespace
}  // namespace cudabk
