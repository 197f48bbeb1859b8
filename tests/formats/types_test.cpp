// The table of types against the golden headers; names and ids.
#include <algorithm>
#include <cctype>
#include <set>

#include "gold.h"
#include "graph/dtype.h"

namespace cudabk::test {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

struct Row {
  const char* name;
  int id, elements, bytes;
};
constexpr Row kRows[] = {
    {"f32", 0, 1, 4},         {"f16", 1, 1, 2},         {"q4_0", 2, 32, 18},      {"q4_1", 3, 32, 20},
    {"q5_0", 6, 32, 22},      {"q5_1", 7, 32, 24},      {"q8_0", 8, 32, 34},      {"q8_1", 9, 32, 36},
    {"q2_K", 10, 256, 84},    {"q3_K", 11, 256, 110},   {"q4_K", 12, 256, 144},   {"q5_K", 13, 256, 176},
    {"q6_K", 14, 256, 210},   {"q8_K", 15, 256, 292},   {"iq2_xxs", 16, 256, 66}, {"iq2_xs", 17, 256, 74},
    {"iq3_xxs", 18, 256, 98}, {"iq1_s", 19, 256, 50},   {"iq4_nl", 20, 32, 18},   {"iq3_s", 21, 256, 110},
    {"iq2_s", 22, 256, 82},   {"iq4_xs", 23, 256, 136}, {"i8", 24, 1, 1},         {"i16", 25, 1, 2},
    {"i32", 26, 1, 4},        {"i64", 27, 1, 8},        {"f64", 28, 1, 8},        {"iq1_m", 29, 256, 56},
    {"bf16", 30, 1, 2},       {"tq1_0", 34, 256, 54},   {"tq2_0", 35, 256, 66},   {"mxfp4", 39, 32, 17},
    {"nvfp4", 40, 64, 36},    {"q1_0", 41, 128, 18},    {"q2_0", 42, 64, 18},
};

TEST(Types, IdsNamesAndBlocks) {
  ASSERT_EQ(static_cast<size_t>(kDTypeCount), std::size(kRows));
  for (const Row& row : kRows) {
    const auto type = parse_dtype(row.name);
    ASSERT_TRUE(type.ok()) << row.name;
    EXPECT_EQ(static_cast<int>(*type), row.id) << row.name;
    EXPECT_EQ(dtype_name(*type), row.name);
    EXPECT_EQ(block_elements(*type), row.elements) << row.name;
    EXPECT_EQ(block_bytes(*type), row.bytes) << row.name;
  }
}

TEST(Types, RetiredIdsAreNotInTheTable) {
  std::set<int> ids;
  for (const DTypeTraits& row : kDTypes) {
    EXPECT_TRUE(ids.insert(static_cast<int>(row.type)).second) << row.name;
  }
  for (const int retired : {4, 5, 31, 32, 33, 36, 37, 38}) {
    EXPECT_EQ(ids.count(retired), 0U) << retired;
  }
}

TEST(Types, ParseInAnyCase) {
  for (const DTypeTraits& row : kDTypes) {
    std::string upper = row.name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    for (const std::string& text : {upper, lower(row.name)}) {
      const auto type = parse_dtype(text);
      ASSERT_TRUE(type.ok()) << text;
      EXPECT_EQ(*type, row.type) << text;
    }
  }
}

TEST(Types, UnknownNamesAreRefusedWithTheValidOnes) {
  for (const char* text : {"", "q4", "q4_2", "q4_3", "q4_K ", "iq4_nl_4_4", "4"}) {
    const auto type = parse_dtype(text);
    ASSERT_FALSE(type.ok()) << text;
    EXPECT_EQ(type.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(type.error().message.find("q4_K"), std::string::npos);
    EXPECT_NE(type.error().message.find("iq2_xxs"), std::string::npos);
  }
}

TEST(Types, GoldenHeadersAgree) {
  for (const DTypeTraits& row : kDTypes) {
    if (!is_quantized(row.type)) {
      continue;
    }
    const Gold gold("r4c1024/" + lower(row.name));
    ASSERT_TRUE(gold.valid());
    EXPECT_EQ(gold.type_id(), static_cast<uint32_t>(row.type)) << row.name;
    EXPECT_EQ(gold.block_elements(), static_cast<uint32_t>(row.block_elements)) << row.name;
    EXPECT_EQ(gold.block_bytes(), static_cast<uint32_t>(row.block_bytes)) << row.name;
  }
}

}  // namespace
}  // namespace cudabk::test
