#include <fmt/format.h>
#include <gtest/gtest.h>

#include "families.h"

namespace cudabk {
namespace {

using test::family_set;
using test::file;
using test::kTable;
using test::problem;

struct Bad {
  const char* what;
  std::string json;
  const char* path;
  const char* reason;
};

std::ostream& operator<<(std::ostream& out, const Bad& bad) { return out << bad.what; }

std::string one_rule(const std::string& rule) { return file(R"("q4_K": [)" + rule + "]"); }

std::vector<Bad> bad_files() {
  const std::string good = file(kTable);
  std::string other_schema = good, no_schema = good;
  other_schema.replace(other_schema.find("profile/1"), 9, "profile/2");
  no_schema.replace(no_schema.find("schema"), 6, "Schema");
  return {
      {"empty", "", "/", "empty"},
      {"more behind a zero byte", good + std::string("\0}", 2), "/", "zero byte"},
      {"truncated", good.substr(0, good.size() / 2), "/", "not valid JSON"},
      {"invalid UTF-8", file(kTable, "\"name\": \"\xff\xfe\", \"arch\": \"sm_80\""), "/", "not valid JSON"},
      {"not an object", "[]", "/", "expected an object"},
      {"repeated name", R"({"schema": "cudabk-profile/1", "schema": "cudabk-profile/1"})", "/", "appears twice"},
      {"newer schema", other_schema, "/schema", "cudabk-profile/2"},
      {"no schema", no_schema, "/schema", "missing"},
      {"extra field",
       R"({"schema": "cudabk-profile/1", "device": {"name": "x", "arch": "sm_80"}, "tables": {}, "x": 1})", "/x",
       "unknown field"},
      {"no device", R"({"schema": "cudabk-profile/1", "tables": {}})", "/", "device"},
      {"no tables", R"({"schema": "cudabk-profile/1", "device": {"name": "x", "arch": "sm_80"}})", "/", "tables"},
      {"architecture", file(kTable, R"("name": "x", "arch": "ninety")"), "/device/arch", "ninety"},
      {"name type", file(kTable, R"("name": 7, "arch": "sm_80")"), "/device/name", "expected text"},
      {"negative SMs", file(kTable, R"("name": "x", "arch": "sm_80", "sm_count": -1)"), "/device/sm_count", "-1"},
      {"unknown op", R"({"schema": "cudabk-profile/1", "device": {"name": "x", "arch": "sm_80"},
                        "tables": {"mul_max": {}}})",
       "/tables/mul_max", "mul_mat"},
      {"unknown key", file(R"("q4_Z": [{"use": "any"}])"), "/tables/mul_mat/q4_Z", "q4_K"},
      {"key with a slash", file(R"("a/b": [{"use": "any"}])"), "/tables/mul_mat/a~1b", "no such table"},
      {"no rules", file(R"("q4_K": [])"), "/tables/mul_mat/q4_K", "at least one rule"},
      {"rules type", file(R"("q4_K": {"use": "any"})"), "/tables/mul_mat/q4_K", "list"},
      {"rule type", one_rule("7"), "/tables/mul_mat/q4_K/0", "expected an object"},
      {"no use", one_rule("{}"), "/tables/mul_mat/q4_K/0", "use"},
      {"unknown family", one_rule(R"({"use": "warp"})"), "/tables/mul_mat/q4_K/0/use", "vec, tile, any"},
      {"unknown parameter", one_rule(R"({"use": "vec", "config": {"wraps": 4}})"),
       "/tables/mul_mat/q4_K/0/config/wraps", "warps, rows"},
      {"parameter of a family without", one_rule(R"({"use": "any", "config": {"warps": 4}})"),
       "/tables/mul_mat/q4_K/0/config/warps", "no parameters"},
      {"negative tile", one_rule(R"({"use": "tile", "config": {"tile_m": -64}})"),
       "/tables/mul_mat/q4_K/0/config/tile_m", "-64"},
      {"value outside the space", one_rule(R"({"use": "vec", "config": {"warps": 3}})"),
       "/tables/mul_mat/q4_K/0/config/warps", "1, 2, 4, 8"},
      {"value that only looks right after truncation to 32 bits",
       one_rule(R"({"use": "vec", "config": {"warps": 4294967300}})"), "/tables/mul_mat/q4_K/0/config/warps",
       "4294967300"},
      {"value as text", one_rule(R"({"use": "vec", "config": {"warps": "4"}})"), "/tables/mul_mat/q4_K/0/config/warps",
       "whole number"},
      {"value as fraction", one_rule(R"({"use": "vec", "config": {"warps": 4.0}})"),
       "/tables/mul_mat/q4_K/0/config/warps", "whole number"},
      {"unknown dimension", one_rule(R"({"nn": [1, 8], "use": "any"})"), "/tables/mul_mat/q4_K/0/nn", "m, n, k"},
      {"interval upside down", one_rule(R"({"n": [8, 1], "use": "any"})"), "/tables/mul_mat/q4_K/0/n", "8"},
      {"negative interval", one_rule(R"({"n": [-1, 8], "use": "any"})"), "/tables/mul_mat/q4_K/0/n/0", "negative"},
      {"interval length", one_rule(R"({"n": [1], "use": "any"})"), "/tables/mul_mat/q4_K/0/n", "[low, high]"},
      {"interval beyond 63 bits", one_rule(R"({"n": [1, 18446744073709551615], "use": "any"})"),
       "/tables/mul_mat/q4_K/0/n/1", "whole number"},
      {"last rule with a condition", one_rule(R"({"n": [1, 8], "use": "any"})"), "/tables/mul_mat/q4_K/0",
       "match everything"},
      {"code of any text", one_rule(R"({"use": "any", "code": "fast"})"), "/tables/mul_mat/q4_K/0/code", "64 digits"},
      {"empty code", one_rule(R"({"use": "any", "code": ""})"), "/tables/mul_mat/q4_K/0/code", "64 digits"},
      {"code without a prefix", one_rule(R"({"use": "any", "code": ")" + std::string(71, 'a') + R"("})"),
       "/tables/mul_mat/q4_K/0/code", "sha256:"},
      {"short code", one_rule(R"({"use": "any", "code": "sha256:00"})"), "/tables/mul_mat/q4_K/0/code", "sha256:00"},
      {"code in capitals", one_rule(R"({"use": "any", "code": ")" + test::code_hash('A') + R"("})"),
       "/tables/mul_mat/q4_K/0/code", "0-9a-f"},
      {"code type", one_rule(R"({"use": "any", "code": 7})"), "/tables/mul_mat/q4_K/0/code", "expected text"},
      {"unknown constant", R"({"schema": "cudabk-profile/1", "device": {"name": "x", "arch": "sm_80"}, "tables": {},
                             "constants": {"offload": 1}})",
       "/constants/offload", "offload_min_batch"},
      {"negative constant", R"({"schema": "cudabk-profile/1", "device": {"name": "x", "arch": "sm_80"}, "tables": {},
                              "constants": {"offload_min_batch": -1}})",
       "/constants/offload_min_batch", "negative"},
  };
}

class BadFile : public testing::TestWithParam<Bad> {};

TEST_P(BadFile, IsRefusedWithFilePathAndReason) {
  const auto profile = parse_profile(GetParam().json, "some.json", family_set());
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().kind, ErrorKind::kInvalid);
  const std::string& message = profile.error().message;
  EXPECT_TRUE(message.starts_with(std::string("some.json: ") + GetParam().path + ": ")) << message;
  EXPECT_NE(message.find(GetParam().reason), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(All, BadFile, testing::ValuesIn(bad_files()));

TEST(ParseProfile, EveryPrefixAndEveryDamagedByteIsAnErrorOrAProfileNeverACrash) {
  const std::string good = file(kTable);
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(parse_profile(good.substr(0, i), "x", family_set()).ok()) << i;
    for (const char c : {'\0', '"', '{', ']', '-', '9', '\xff'}) {
      std::string damaged = good;
      damaged[i] = c;
      for (const ParseMode mode : {ParseMode::kStrict, ParseMode::kLenient}) {
        const auto profile = parse_profile(damaged, "x", family_set(), mode);
        EXPECT_TRUE(profile.ok() || profile.error().kind == ErrorKind::kInvalid);
      }
    }
  }
}

TEST(ParseProfile, ReadsEveryField) {
  const auto profile = parse_profile(
      R"({"schema": "cudabk-profile/1",
          "device": {"name": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132, "l2_bytes": 62914560},
          "made_by": {"cudabk": "0.1.0", "driver": "580.1"},
          "layouts": {"q4_K": "frag", "q8_0": "raw"},
          "tables": {"mul_mat": {"q4_K": [
            {"n": [1, 8], "k": [4096, null], "use": "vec", "config": {"warps": 2}, "evidence": "e", "code": ")" +
          test::code_hash('a') + R"("},
            {"use": "any"}]}},
          "constants": {"offload_min_batch": 7},
          "evidence": {"regret_median_percent": 0.4, "measurements": "a note"}})",
      "x.json", family_set());
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->device.sm_count, 132);
  EXPECT_EQ(profile->made_by.at("driver"), "580.1");
  const Table& table = profile->table(problem(1));
  ASSERT_EQ(table.rules.size(), 2U);
  EXPECT_EQ(table.rules[0].code, test::code_hash('a'));
  EXPECT_EQ(table.rules[0].config, (Config{{"warps", 2}}));
  ASSERT_EQ(table.rules[0].when.size(), 2U);
  EXPECT_EQ(rule_text(table.rules[0]), "k 4096.., n 1..8: vec warps=2");
  EXPECT_EQ(profile->layout_of("q4_K"), "frag");
  EXPECT_EQ(profile->layout_of("q8_0"), "raw");
  EXPECT_EQ(profile->layout_of("q6_K"), "raw");  // not named
  EXPECT_EQ(profile->constants.at("offload_min_batch"), 7);
  EXPECT_EQ(profile->constants.at("peer_copy_max_batch"), 128);  // not named: the built-in value
  EXPECT_EQ(profile->evidence.at("regret_median_percent"), "0.4");
  EXPECT_EQ(profile->evidence.at("measurements"), "a note");
}

TEST(ParseProfile, LayoutsAreOfTypesThatHaveThem) {
  const std::pair<const char*, const char*> wrong[] = {{R"("q9": "frag")", "/layouts/q9"},
                                                       {R"("q4_K": "fast")", "/layouts/q4_K"},
                                                       {R"("q4_K": 1)", "/layouts/q4_K"},
                                                       {R"("f16": "frag")", "f16 has no frag layout"}};
  for (const auto& [entry, message] : wrong) {
    const std::string text = fmt::format(R"({{"schema": "cudabk-profile/1", "device": {{"name": "*", "arch": "sm_90a"}},
                                            "layouts": {{{}}}, "tables": {{}}}})",
                                         entry);
    const auto profile = parse_profile(text, "x.json", family_set());
    ASSERT_FALSE(profile.ok()) << entry;
    EXPECT_NE(profile.error().message.find(message), std::string::npos) << profile.error().message;
  }
}

TEST(ParseProfile, TheStarTableServesTypesWithoutTheirOwn) {
  const auto profile = parse_profile(file(R"("*": [{"use": "any"}], "f16": [{"use": "tile"}])"), "x", family_set());
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->table(problem(1, 1, 1, "q6_K")).rules[0].use, "any");
  EXPECT_EQ(profile->table(problem(1, 1, 1, "f16")).rules[0].use, "tile");
  EXPECT_TRUE(profile->table({"flash_attn_ext", "f16", {}}).rules.empty());
}

TEST(ParseProfile, AFoundFileLosesOnlyTheRulesThatCannotBeRead) {
  const auto profile =
      parse_profile(file(R"("q4_K": [{"n": [1, 2], "use": "gone"}, {"n": [3, 4], "use": "vec", "config": {"warps": 3}},
                       {"n": [5, 8], "use": "vec"}, {"use": "any"}],
              "weird": [{"use": "any"}])"),
                    "found.json", family_set(), ParseMode::kLenient);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->table(problem(1)).rules.size(), 2U);
  ASSERT_EQ(profile->warnings.size(), 3U);
  EXPECT_NE(profile->warnings[0].find("/tables/mul_mat/q4_K/0/use"), std::string::npos) << profile->warnings[0];
  const auto choice = choose(problem(1), test::device(), profile->table(problem(1)), test::families());
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->family, "any");
}

TEST(ParseProfile, WhatIsWrittenReadsBackTheSame) {
  const auto first = parse_profile(
      R"({"schema": "cudabk-profile/1", "device": {"name": "a \"b\" / \u00fc", "arch": "sm_120a", "sm_count": 3},
          "tables": {"mul_mat": {"*": [{"n": [2, null], "use": "tile", "config": {"tile_m": 32}}, {"use": "any"}]}},
          "evidence": {"shapes": [{"m": 1, "ns": 2.5}], "text": "12x"}})",
      "x", family_set());
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::string text = profile_to_json(*first);
  const auto second = parse_profile(text, "x", family_set());
  ASSERT_TRUE(second.ok()) << second.error().message << "\n" << text;
  EXPECT_EQ(profile_to_json(*second), text);
  EXPECT_EQ(second->device.name, "a \"b\" / \u00fc");
  EXPECT_EQ(second->evidence, first->evidence);
}

}  // namespace
}  // namespace cudabk
