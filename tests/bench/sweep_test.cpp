#include "bench/sweep.h"

#include <gtest/gtest.h>

namespace cudabk {
namespace {

std::vector<int64_t> sweep(std::string_view text) {
  const Result<std::vector<int64_t>> values = parse_sweep(text);
  EXPECT_TRUE(values.ok()) << text << ": " << (values.ok() ? "" : values.error().message);
  return values.ok() ? *values : std::vector<int64_t>{};
}

TEST(Sweep, ListsRangesAndFactors) {
  EXPECT_EQ(sweep("7"), (std::vector<int64_t>{7}));
  EXPECT_EQ(sweep("1,8,64"), (std::vector<int64_t>{1, 8, 64}));
  EXPECT_EQ(sweep("1:4"), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(sweep("1:10:4"), (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(sweep("1:64*4"), (std::vector<int64_t>{1, 4, 16, 64}));
  EXPECT_EQ(sweep("1:60*4"), (std::vector<int64_t>{1, 4, 16}));
  EXPECT_EQ(sweep("0, 5:6 ,5"), (std::vector<int64_t>{0, 5, 6}));
}

TEST(Sweep, ReachesTheLargestNumberWithoutOverflow) {
  EXPECT_EQ(sweep("9223372036854775807"), (std::vector<int64_t>{INT64_MAX}));
  EXPECT_EQ(sweep("9223372036854775806:9223372036854775807").size(), 2U);
  EXPECT_EQ(sweep("4611686018427387904:9223372036854775807*2").size(), 1U);
}

TEST(Sweep, RefusesWhatIsNoSweep) {
  for (const char* text : {"", ",", "1,", "1,,2", "-1", "1:-1", "5:1", "1:4:0", "1:4*1", "0:4*2", "x", "1.5", "1e3",
                           "9223372036854775808", "1:2:3:4", "1:1000000000", "0x10", "1 2"}) {
    const Result<std::vector<int64_t>> values = parse_sweep(text);
    ASSERT_FALSE(values.ok()) << "'" << text << "'";
    EXPECT_EQ(values.error().kind, ErrorKind::kInvalid) << text;
    EXPECT_EQ(values.error().message.find('\n'), std::string::npos);
  }
}

TEST(Words, MatchInAnyCaseAndNameTheChoices) {
  const std::vector<std::string> types{"q4_K", "f16"};
  EXPECT_EQ(*match_word("type", "Q4_k", types), "q4_K");
  const Result<std::string> bad = match_word("type", "q4", types);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "unknown type 'q4'; valid: q4_K, f16");
}

}  // namespace
}  // namespace cudabk
