// Scalar conversions against convert.gold, and the code books against their JSON lists.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gold.h"
#include "reference/formats/blocks.h"
#include "reference/formats/tables.h"

namespace cudabk::test {
namespace {

TEST(Convert, FloatToHalfTypes) {
  const Gold gold("convert");
  const auto bits = gold.section<uint32_t>("fbits");
  const auto half = gold.section<uint16_t>("f16");
  const auto brain = gold.section<uint16_t>("bf16");
  ASSERT_FALSE(bits.empty());
  for (size_t i = 0; i < bits.size(); ++i) {
    const float x = std::bit_cast<float>(bits[i]);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(x))));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(x))));
      continue;
    }
    EXPECT_EQ(f32_to_f16(x), half[i]) << std::hex << bits[i];
    EXPECT_EQ(f32_to_bf16(x), brain[i]) << std::hex << bits[i];
  }
}

TEST(Convert, HalfToFloatAndBack) {
  const Gold gold("convert");
  const auto bits = gold.section<uint16_t>("hbits");
  const auto wide = gold.section<float>("hf32");
  ASSERT_FALSE(bits.empty());
  for (size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(f16_to_f32(bits[i])), std::bit_cast<uint32_t>(wide[i])) << std::hex << bits[i];
  }
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto pattern = static_cast<uint16_t>(h);
    if (!std::isnan(f16_to_f32(pattern))) {
      ASSERT_EQ(f32_to_f16(f16_to_f32(pattern)), pattern);
    }
    if (!std::isnan(bf16_to_f32(pattern))) {
      ASSERT_EQ(f32_to_bf16(bf16_to_f32(pattern)), pattern);
    }
  }
}

TEST(Convert, ScaleBytes) {
  const Gold gold("convert");
  const auto e8m0 = gold.section<float>("e8m0");
  ASSERT_EQ(e8m0.size(), 255U);
  for (size_t code = 0; code < e8m0.size(); ++code) {
    EXPECT_EQ(2 * formats::e8m0_half(static_cast<uint8_t>(code)), e8m0[code]) << code;
  }
  const auto ue4m3 = gold.section<float>("ue4m3");
  ASSERT_EQ(ue4m3.size(), 128U);
  for (size_t code = 0; code < ue4m3.size(); ++code) {
    EXPECT_EQ(formats::ue4m3_half(static_cast<uint8_t>(code)), ue4m3[code]) << code;
  }
  const auto in = gold.section<float>("u4in");
  const auto out = gold.section<uint8_t>("u4out");
  ASSERT_FALSE(in.empty());
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(formats::encode_ue4m3(in[i]), out[i]) << in[i];
  }
}

std::vector<int> table(const std::string& name) {
  std::ifstream file(std::string(CUDABK_TEST_DATA) + "/tables/" + name + ".json");
  return nlohmann::json::parse(file).at("values").get<std::vector<int>>();
}

template <int N, class Value>
void expect_grid(const char* name, const Grid<N>& grid, int width, Value value) {
  const auto want = table(name);
  ASSERT_EQ(want.size(), static_cast<size_t>(N * width)) << name;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(value(grid[static_cast<uint32_t>(i) / width], static_cast<int>(i) % width), want[i]) << name << " " << i;
  }
}

TEST(Tables, GridsAgreeWithTheirLists) {
  using namespace formats;
  expect_grid("iq1s_grid", kIq1sGrid, 8, [](uint16_t e, int j) { return grid8(e, kIq1Levels, j); });
  const auto iq2 = [](uint16_t e, int j) { return grid8(e, kIq2Levels, j); };
  expect_grid("iq2xxs_grid", kIq2xxsGrid, 8, iq2);
  expect_grid("iq2xs_grid", kIq2xsGrid, 8, iq2);
  expect_grid("iq2s_grid", kIq2sGrid, 8, iq2);
  expect_grid("iq3xxs_grid", kIq3xxsGrid, 4, [](uint16_t e, int j) { return grid4(e, kIq3xxsLevels, j); });
  expect_grid("iq3s_grid", kIq3sGrid, 4, [](uint16_t e, int j) { return grid4(e, kIq3sLevels, j); });
}

TEST(Tables, SignsAndValuesAgreeWithTheirLists) {
  const auto signs = table("ksigns");
  ASSERT_EQ(signs.size(), 128U);
  for (uint32_t v = 0; v < 128; ++v) {
    EXPECT_EQ(formats::sign_byte(v), signs[v]) << v;
  }
  const auto iq4 = table("iq4nl_values");
  const auto fp4 = table("mxfp4_values");
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(formats::kIq4nlValues[i], iq4.at(i));
    EXPECT_EQ(formats::kFp4Values[i], fp4.at(i));
  }
}

}  // namespace
}  // namespace cudabk::test
