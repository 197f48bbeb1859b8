// Random tensor contents: reproducible, finite, of the wanted size.
#include "graph/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "reference/reference.h"

namespace cudabk::test {
namespace {

constexpr int64_t kElements = 1 << 18;

std::vector<std::byte> filled(RandomFill fill, int64_t elements = kElements) {
  std::vector<std::byte> out(static_cast<size_t>(row_bytes(fill.type, elements)));
  EXPECT_TRUE(fill_random(fill, out).ok());
  return out;
}

std::vector<float> decoded(DType type, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / static_cast<size_t>(block_bytes(type)) *
                            static_cast<size_t>(block_elements(type)));
  decode_row(type, bytes.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

struct Moments {
  double mean = 0;
  double rms = 0;
};
Moments moments(const std::vector<float>& values) {
  Moments m;
  for (const float v : values) {
    m.mean += v;
    m.rms += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(values.size());
  return {m.mean / n, std::sqrt(m.rms / n)};
}

TEST(Init, EveryFloatAndBlockTypeHasTheWantedSize) {
  for (const DTypeTraits& row : kDTypes) {
    const bool integer = row.type >= DType::i8 && row.type <= DType::i64;
    if (integer) {
      continue;  // tested below
    }
    for (const double stddev : {1.0 / 64, 1.0 / std::sqrt(14336.0), 0.5}) {
      const auto values = decoded(row.type, filled({.type = row.type, .stddev = stddev, .seed = 7}));
      for (const float v : values) {
        ASSERT_TRUE(std::isfinite(v)) << row.name;
        if (!is_quantized(row.type)) {
          ASSERT_NE(v, 0) << row.name;
        }
      }
      const Moments m = moments(values);
      EXPECT_NEAR(m.rms / stddev, 1, 0.08) << row.name << " stddev " << stddev;
      EXPECT_NEAR(m.mean / stddev, 0, 0.08) << row.name << " stddev " << stddev;
    }
  }
}

TEST(Init, SameBytesOnAnyNumberOfThreadsAndInPieces) {
  for (const DTypeTraits& row : kDTypes) {
    RandomFill fill{.type = row.type, .stddev = 0.02, .seed = 11, .threads = 1};
    if (row.type >= DType::i8 && row.type <= DType::i64) {
      fill.distribution = {Distribution::Kind::kUniform, 0, 100};
    }
    const auto whole = filled(fill, 1 << 20);
    RandomFill threaded = fill;
    threaded.threads = 5;
    EXPECT_TRUE(filled(threaded, 1 << 20) == whole) << row.name;
    auto pieces = std::vector<std::byte>(whole.size());
    const size_t block = static_cast<size_t>(block_bytes(row.type));
    const size_t cut = 1021 * block;  // not a multiple of anything
    RandomFill tail = fill;
    tail.first_block = 1021;
    ASSERT_TRUE(fill_random(fill, std::span(pieces).first(cut)).ok());
    ASSERT_TRUE(fill_random(tail, std::span(pieces).subspan(cut)).ok());
    EXPECT_TRUE(pieces == whole) << row.name;
    RandomFill other = fill;
    other.seed = 12;
    EXPECT_FALSE(filled(other, 1 << 20) == whole) << row.name;
  }
}

TEST(Init, UniformStaysInItsBounds) {
  RandomFill fill{.type = DType::f32, .seed = 3};
  fill.distribution = {Distribution::Kind::kUniform, -0.25, 3};
  const auto values = decoded(DType::f32, filled(fill));
  float low = 10;
  float high = -10;
  for (const float v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  EXPECT_GE(low, -0.25F);
  EXPECT_LE(high, 3.0F);
  EXPECT_NEAR(low, -0.25, 1e-3);
  EXPECT_NEAR(high, 3, 1e-3);
  EXPECT_NEAR(moments(values).mean, 1.375, 0.01);
}

TEST(Init, IntegersFollowTheUniformBounds) {
  RandomFill fill{.type = DType::i32, .seed = 3};
  fill.distribution = {Distribution::Kind::kUniform, 0, 7};
  for (const float v : decoded(DType::i32, filled(fill))) {
    ASSERT_GE(v, 0);
    ASSERT_LE(v, 7);
  }
}

TEST(Init, ScalesVaryFromBlockToBlock) {
  const auto bytes = filled({.type = DType::q4_0, .stddev = 0.02, .seed = 5});
  uint16_t first = 0;
  std::memcpy(&first, bytes.data(), 2);
  int different = 0;
  for (size_t at = 18; at < bytes.size(); at += 18) {
    uint16_t scale = 0;
    std::memcpy(&scale, bytes.data() + at, 2);
    different += scale != first ? 1 : 0;
  }
  EXPECT_GT(different, static_cast<int>(bytes.size() / 18 / 2));
}

TEST(Init, RefusesWhatItCannotFill) {
  std::vector<std::byte> out(35);
  EXPECT_FALSE(fill_random({.type = DType::q4_0}, out).ok());
  EXPECT_FALSE(fill_random({.type = DType::i8, .stddev = 0}, out).ok());
  EXPECT_FALSE(fill_random({.type = DType::i8, .stddev = NAN}, out).ok());
}

TEST(Init, ParsesDistributions) {
  ASSERT_TRUE(parse_distribution("normal").ok());
  const auto uniform = parse_distribution("uniform:-2,0.5");
  ASSERT_TRUE(uniform.ok());
  EXPECT_EQ(uniform->low, -2);
  EXPECT_EQ(uniform->high, 0.5);
  EXPECT_EQ(distribution_text(*uniform), "uniform:-2,0.5");
  for (const char* text : {"", "Normal", "uniform", "uniform:", "uniform:1", "uniform:1,1", "uniform:2,1",
                           "uniform:0,inf", "uniform:0,nan", "uniform:0,1x", "zipf"}) {
    const auto d = parse_distribution(text);
    ASSERT_FALSE(d.ok()) << text;
    EXPECT_NE(d.error().message.find("uniform:A,B"), std::string::npos);
  }
}

TEST(Indices, AreBelowTheLimitAndDistinctInEveryWindow) {
  for (const int64_t limit : {1, 2, 5, 12, 97, 4096}) {
    constexpr int64_t kRow = 300, kRows = 7;
    std::vector<int32_t> narrow(kRow * kRows);
    std::vector<int64_t> wide(kRow * kRows);
    ASSERT_TRUE(fill_indices({DType::i32, limit, kRow, 11}, std::as_writable_bytes(std::span(narrow))).ok());
    ASSERT_TRUE(fill_indices({DType::i64, limit, kRow, 11}, std::as_writable_bytes(std::span(wide))).ok());
    bool ascending = true;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kRow; ++i) {
        const auto at = static_cast<size_t>(row * kRow + i);
        ASSERT_EQ(narrow[at], wide[at]);
        ASSERT_GE(wide[at], 0);
        ASSERT_LT(wide[at], limit);
        ascending = ascending && (i == 0 || wide[at] >= wide[at - 1]);
        for (int64_t back = 1; back < limit && back <= i; ++back) {
          ASSERT_NE(wide[at], wide[at - static_cast<size_t>(back)]) << "limit " << limit;
        }
      }
    }
    EXPECT_EQ(ascending, limit == 1) << "limit " << limit;
  }
}

TEST(Indices, BadRequestsAreErrors) {
  std::vector<std::byte> out(8);
  EXPECT_FALSE(fill_indices({DType::f32, 4, 1, 0}, out).ok());
  EXPECT_FALSE(fill_indices({DType::i32, 0, 1, 0}, out).ok());
  EXPECT_FALSE(fill_indices({DType::i32, int64_t{1} << 32, 1, 0}, out).ok());
}

}  // namespace
}  // namespace cudabk::test
