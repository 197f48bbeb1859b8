#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "families.h"

namespace cudabk {
namespace {

using test::family_set;
using test::file;

Profile parse(const std::string& tables) {
  auto profile = parse_profile(file(tables), "p.json", family_set());
  EXPECT_TRUE(profile.ok()) << profile.error().message;
  return std::move(profile).value();
}

TEST(Stale, AChangedHashMarksTheRuleAndKeepsItInUse) {
  const std::string now = test::code_hash('a');
  Profile profile =
      parse(R"("q4_K": [{"n": [1, 4], "use": "vec", "code": ")" + test::code_hash('0') +
            R"("}, {"n": [5, 8], "use": "vec", "code": ")" + now + R"("}, {"n": [9, 9], "use": "tile", "code": ")" +
            test::code_hash('7') + R"("}, {"use": "any"}])");
  const auto hash_of = [&now](const std::string& op, const std::string& key, const Rule& rule) {
    EXPECT_EQ(op + key, "mul_matq4_K");
    return rule.use == "vec" ? now : "";
  };
  EXPECT_EQ(mark_stale(profile, hash_of), 1);
  const auto& rules = profile.tables.at("mul_mat").at("q4_K").rules;
  EXPECT_TRUE(rules[0].stale);
  EXPECT_FALSE(rules[1].stale);
  EXPECT_FALSE(rules[2].stale);
  EXPECT_FALSE(rules[3].stale);
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_NE(profile.warnings[0].find("/tables/mul_mat/q4_K/0"), std::string::npos);
  EXPECT_EQ(choose(test::problem(2), test::device(), profile.table(test::problem(2)), test::families())->rule, 0);
}

TEST(Merge, LaterTablesWinAndOthersStay) {
  const Profile a = parse(R"("q4_K": [{"use": "any"}], "q6_K": [{"use": "tile"}])");
  Profile b = parse(R"("q4_K": [{"use": "vec"}])");
  b.layouts["q4_K"] = "frag";
  const auto merged = merge_profiles(a, b);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->tables.at("mul_mat").at("q4_K").rules[0].use, "vec");
  EXPECT_EQ(merged->tables.at("mul_mat").at("q6_K").rules[0].use, "tile");
  EXPECT_EQ(merged->layout_of("q4_K"), "frag");
  b.device.sm_count = 66;
  const auto refused = merge_profiles(a, b);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("132 and 66"), std::string::npos) << refused.error().message;
}

TEST(Prune, DropsShadowedAndGoneRulesOnly) {
  Profile profile = parse(R"("q4_K": [{"n": [1, 8], "use": "vec"},
                                      {"n": [2, 4], "use": "vec", "config": {"warps": 4}},
                                      {"n": [2, 4], "use": "vec", "config": {"warps": 8}},
                                      {"n": [2, 9], "use": "vec"},
                                      {"use": "tile"}, {"use": "any"}])");
  Rule gone;
  gone.use = "gone";
  auto& rules = profile.tables.at("mul_mat").at("q4_K").rules;
  rules.insert(rules.begin(), gone);
  const auto dropped = prune_profile(profile, family_set());
  ASSERT_EQ(dropped.size(), 2U);  // gone, and warps = 4 (the fallback value) inside the first interval
  EXPECT_NE(dropped[0].find("gone"), std::string::npos);
  EXPECT_NE(dropped[1].find("shadowed"), std::string::npos);
  EXPECT_EQ(rules.size(), 5U);
}

// What pruning comes to, rule by rule against every earlier one that stayed.
std::vector<Rule> pruned_slowly(const std::vector<Rule>& rules) {
  const auto interval = [](const Rule& rule, const std::string& dim) {
    for (const auto& [name, given] : rule.when) {
      if (name == dim) {
        return given;
      }
    }
    return Interval{};
  };
  const auto covers = [&](const Rule& outer, const Rule& inner) {
    bool all = outer.use == inner.use && outer.config == inner.config;
    for (const char* dim : {"k", "m", "n"}) {
      const Interval o = interval(outer, dim), i = interval(inner, dim);
      all = all && o.low <= i.low && o.high >= i.high;
    }
    return all;
  };
  std::vector<Rule> kept;
  for (size_t i = 0; i < rules.size(); ++i) {
    const bool dead = std::any_of(kept.begin(), kept.end(), [&](const Rule& r) { return covers(r, rules[i]); });
    if (!dead || i + 1 == rules.size()) {
      kept.push_back(rules[i]);
    }
  }
  return kept;
}

TEST(Prune, DropsWhatAComparisonOfAllPairsDrops) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](unsigned limit) { return static_cast<int64_t>(random() % limit); };
  size_t dropped = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Rule> rules(static_cast<size_t>(1 + below(40)));
    for (Rule& rule : rules) {
      rule.use = below(2) == 0 ? "vec" : "tile";
      rule.config = rule.use == "vec" ? Config{{"warps", 1 << below(2)}, {"rows", 1}} : Config{{"tile_m", 32}};
      for (const char* dim : {"k", "n", "m"}) {
        if (below(3) > 0) {
          const int64_t low = below(6);
          rule.when.emplace_back(dim, Interval{low, below(4) == 0 ? INT64_MAX : low + below(6)});
        }
      }
    }
    Profile profile;
    profile.tables["mul_mat"]["q4_K"].rules = rules;
    dropped += prune_profile(profile, family_set()).size();
    const std::vector<Rule>& now = profile.tables.at("mul_mat").at("q4_K").rules;
    const std::vector<Rule> expected = pruned_slowly(rules);
    ASSERT_EQ(now.size(), expected.size()) << "round " << round;
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(rule_text(now[i]), rule_text(expected[i])) << "round " << round << ", rule " << i;
    }
  }
  EXPECT_GT(dropped, 500U);
}

// Comparing all pairs took minutes for as many.
TEST(Prune, ManyRulesTakeAboutAsLongAsTheyAreMany) {
  Profile profile;
  std::vector<Rule>& rules = profile.tables["mul_mat"]["q4_K"].rules;
  for (int64_t i = 0; i < 20000; ++i) {
    rules.push_back({{{"k", {256 * (i % 4), INT64_MAX}}, {"n", {2 * i, 2 * i + 1}}}, "vec", {{"warps", 2}}});
  }
  rules.push_back({{}, "any", {}});
  const Profile before = profile;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(prune_profile(profile, family_set()).empty());
  EXPECT_TRUE(diff_profiles(before, profile).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Diff, NamesRulesAndConstants) {
  const Profile a = parse(R"("q4_K": [{"n": [1, 8], "use": "vec"}, {"use": "any"}])");
  Profile b = parse(R"("q4_K": [{"n": [1, 6], "use": "vec"}, {"use": "any"}])");
  b.constants["offload_min_batch"] = 64;
  b.layouts["q4_K"] = "frag";
  EXPECT_TRUE(diff_profiles(a, a).empty());
  const auto lines = diff_profiles(a, b);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "- mul_mat q4_K n 1..8: vec");
  EXPECT_EQ(lines[1], "+ mul_mat q4_K n 1..6: vec");
  EXPECT_EQ(lines[2], "layout q4_K: raw -> frag");
  EXPECT_EQ(diff_profiles(b, a)[2], "layout q4_K: frag -> raw");
  EXPECT_EQ(lines[3], "constant offload_min_batch: 32 -> 64");
}

}  // namespace
}  // namespace cudabk
