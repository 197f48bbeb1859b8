#include <gtest/gtest.h>

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
  Profile profile = parse(R"("q4_K": [{"n": [1, 4], "use": "vec", "code": "sha256:old"},
                                      {"n": [5, 8], "use": "vec", "code": "sha256:now"},
                                      {"n": [9, 9], "use": "tile", "code": "sha256:unknown"}, {"use": "any"}])");
  const auto hash_of = [](const std::string& op, const std::string& key, const Rule& rule) {
    EXPECT_EQ(op + key, "mul_matq4_K");
    return std::string(rule.use == "vec" ? "sha256:now" : "");
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
