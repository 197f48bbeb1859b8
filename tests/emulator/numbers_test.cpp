// Conversions and integer primitives of the emulated GPU against slow and obvious versions.
#include "platform/host_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace cudabk {
namespace {

constexpr uint32_t kNumbersSeed = 20261;

// The value of a binary floating-point format of the given fraction width, computed from its definition.
double value_of(uint32_t bits, int fraction_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (fraction_bits + exponent_bits) & 1) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const double whole = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
}

TEST(Numbers, HalvesToFloatAreExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double f = value_of(bits, 10, 5), b = value_of(bits, 7, 8);
    const float got_f = to_float(f16{static_cast<uint16_t>(bits)}), got_b = to_float(bf16{static_cast<uint16_t>(bits)});
    ASSERT_TRUE(std::isnan(f) ? std::isnan(got_f) : got_f == f && std::signbit(got_f) == std::signbit(f)) << bits;
    ASSERT_TRUE(std::isnan(b) ? std::isnan(got_b) : got_b == b && std::signbit(got_b) == std::signbit(b)) << bits;
  }
}

// Nearest even by search in the sorted non-negative values; `overflow` is where infinity begins.
uint16_t nearest(double x, const std::vector<double>& values, double overflow) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  const auto infinity = static_cast<uint16_t>(values.size());
  if (x >= overflow) {
    return sign | infinity;
  }
  const auto above = std::lower_bound(values.begin(), values.end(), x);
  auto high = static_cast<uint16_t>(above - values.begin());
  if (high == infinity) {
    return sign | (infinity - 1);
  }
  if (high == 0 || values[high] == x) {
    return sign | high;
  }
  const double below = x - values[high - 1], over = values[high] - x;
  const bool up = over < below || (over == below && high % 2 == 0);
  return sign | (up ? high : high - 1);
}

std::vector<double> sorted_values(int fraction_bits, int exponent_bits) {
  std::vector<double> values;
  for (uint32_t bits = 0; std::isfinite(value_of(bits, fraction_bits, exponent_bits)); ++bits) {
    values.push_back(value_of(bits, fraction_bits, exponent_bits));
  }
  return values;
}

TEST(Numbers, FloatToHalvesRoundsToNearestEven) {
  SCOPED_TRACE(kNumbersSeed);
  const std::vector<double> f = sorted_values(10, 5), b = sorted_values(7, 8);
  const double f_overflow = 65520, b_overflow = std::ldexp(511.0 / 256, 127);
  const auto check = [&](float x) {
    ASSERT_EQ(to_f16(x).bits, nearest(x, f, f_overflow)) << x;
    ASSERT_EQ(to_bf16(x).bits, nearest(x, b, b_overflow)) << x;
  };
  for (size_t i = 0; i + 1 < f.size(); ++i) {  // each value, each midpoint, and their neighbours
    const auto value = static_cast<float>(f[i]), middle = static_cast<float>((f[i] + f[i + 1]) / 2);
    for (const float x : {value, middle}) {
      for (const float y : {x, std::nextafter(x, 1e30f), std::nextafter(x, -1e30f)}) {
        check(y);
        check(-y);
      }
    }
  }
  for (size_t i = 0; i + 1 < b.size(); ++i) {
    check(static_cast<float>((b[i] + b[i + 1]) / 2));
  }
  std::mt19937 random(kNumbersSeed);
  for (int i = 0; i < 200000; ++i) {
    const float x = bits_to_float(random());
    if (!std::isnan(x)) {
      check(x);
    }
  }
  check(65504.0f);
  check(65519.996f);
  check(65520.0f);
  check(std::numeric_limits<float>::infinity());
  check(std::numeric_limits<float>::max());
  EXPECT_EQ(to_f16(std::numeric_limits<float>::quiet_NaN()).bits, 0x7fff);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::quiet_NaN()).bits, 0x7fff);
  EXPECT_EQ(pack_f16(1.0f, -2.0f), 0xc0003c00u);
  EXPECT_EQ(pack_bf16(1.0f, -2.0f), 0xc0003f80u);
}

TEST(Numbers, PackedHalvesRoundOnce) {
  SCOPED_TRACE(kNumbersSeed);
  const std::vector<double> f = sorted_values(10, 5);
  std::mt19937 random(kNumbersSeed);
  std::uniform_int_distribution<uint32_t> any(0, 0xffff);
  for (int i = 0; i < 200000; ++i) {
    const auto a = static_cast<uint16_t>(any(random) & 0xbfff), b = static_cast<uint16_t>(any(random) & 0xbfff),
               c = static_cast<uint16_t>(any(random) & 0xbfff);  // |x| < 2, so no NaN; sums are exact in double
    const double x = to_float(f16{a}), y = to_float(f16{b}), z = to_float(f16{c});
    const auto low = [](uint32_t v) { return static_cast<uint16_t>(v & 0x7fff); };
    ASSERT_EQ(low(f16x2_fma(a, b, c)), nearest(x * y + z, f, 65520) & 0x7fff) << x << " " << y << " " << z;
    ASSERT_EQ(low(f16x2_add(a, b)), nearest(x + y, f, 65520) & 0x7fff);
    ASSERT_EQ(low(f16x2_sub(a, b)), nearest(x - y, f, 65520) & 0x7fff);
    ASSERT_EQ(low(f16x2_mul(a, b)), nearest(x * y, f, 65520) & 0x7fff);
    const uint32_t high = uint32_t{a} << 16;
    ASSERT_EQ(f16x2_mul(high, uint32_t{b} << 16) >> 16, f16x2_mul(a, b) & 0xffff);
  }
  // A tie that only the addend's last bit decides: 1 + 2^-11 + 2^-24 rounds up, without the addend to even.
  const uint32_t one_and_half_ulp_product = f16x2_fma(0x3c00, 0x1000, 0x3c00);  // 1 * 2^-11 + 1
  EXPECT_EQ(one_and_half_ulp_product & 0xffff, 0x3c00u);
  EXPECT_EQ(bf16x2_fma(0x3f81, 0x3f81, 0) & 0xffff, to_bf16(1.0078125f * 1.0078125f).bits);
}

TEST(Numbers, Dp4a) {
  std::mt19937 random(kNumbersSeed);
  const auto slow = [](uint32_t a, uint32_t b, int c, bool a_signed) {
    int64_t sum = c;
    for (int i = 0; i < 4; ++i) {
      const int x = static_cast<int>(a >> (8 * i) & 255), y = static_cast<int>(b >> (8 * i) & 255);
      sum += (a_signed && x > 127 ? x - 256 : x) * (y > 127 ? y - 256 : y);
    }
    return static_cast<int>(static_cast<uint32_t>(sum));
  };
  for (int i = 0; i < 100000; ++i) {
    const uint32_t a = random(), b = random();
    const int c = static_cast<int>(random());
    ASSERT_EQ(dp4a(static_cast<int>(a), static_cast<int>(b), c), slow(a, b, c, true));
    ASSERT_EQ(dp4a_us(a, static_cast<int>(b), c), slow(a, b, c, false));
  }
  EXPECT_EQ(dp4a(static_cast<int>(0x80808080u), static_cast<int>(0x80808080u), 0), 65536);
  EXPECT_EQ(dp4a_us(0xffffffffu, static_cast<int>(0x80808080u), 0), -130560);
}

TEST(Numbers, BytePermuteOfEverySelector) {
  const uint32_t pairs[][2] = {{0x33221100u, 0x77665544u}, {0x80ff7f01u, 0x00fe8123u}, {0xffffffffu, 0}};
  for (const auto& [a, b] : pairs) {
    for (uint32_t selector = 0; selector < 0x10000; ++selector) {
      uint32_t expected = 0;
      for (int i = 0; i < 4; ++i) {
        const uint32_t choice = selector >> (4 * i) & 15, index = choice % 8;
        uint32_t byte = (index < 4 ? a : b) >> (8 * (index % 4)) & 255;
        if (choice >= 8) {
          byte = byte >= 128 ? 255 : 0;
        }
        expected |= byte << (8 * i);
      }
      ASSERT_EQ(byte_perm(a, b, selector), expected) << std::hex << selector;
    }
  }
}

TEST(Numbers, RoundingShiftsAndMath) {
  EXPECT_EQ(round_to_int(0.5f), 0);
  EXPECT_EQ(round_to_int(1.5f), 2);
  EXPECT_EQ(round_to_int(-2.5f), -2);
  EXPECT_EQ(round_to_int(1e20f), INT32_MAX);
  EXPECT_EQ(round_to_int(-1e20f), INT32_MIN);
  EXPECT_EQ(round_to_int(std::nanf("")), 0);
  EXPECT_EQ(truncate_to_int(1.99f), 1);
  EXPECT_EQ(truncate_to_int(-1.99f), -1);
  EXPECT_EQ(truncate_to_int(1e20f), INT32_MAX);
  EXPECT_EQ(truncate_to_int(-1e20f), INT32_MIN);
  EXPECT_EQ(truncate_to_int(std::nanf("")), 0);
  EXPECT_EQ(add_rounded(mul_rounded(1.0f + 0x1p-12f, 1.0f + 0x1p-12f), -1.0f), 0x1p-11f);  // fused: 2^-11 + 2^-24
  EXPECT_EQ(funnel_shift_right(0x12345678u, 0x9abcdef0u, 8), 0xf0123456u);
  EXPECT_EQ(funnel_shift_right(0x12345678u, 0x9abcdef0u, 32), 0x12345678u);  // the count is taken modulo 32
  EXPECT_EQ(count_bits(0), 0u);
  EXPECT_EQ(count_bits(0x80000101u), 3u);
  EXPECT_EQ(count_bits(0xffffffffu), 32u);
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(max_f(nan, 1.0f), 1.0f);
  EXPECT_EQ(max_f(1.0f, nan), 1.0f);
  EXPECT_EQ(min_f(nan, 1.0f), 1.0f);
  EXPECT_EQ(max_f(-1.0f, 2.0f), 2.0f);
  EXPECT_EQ(min_f(-1.0f, 2.0f), -1.0f);
  EXPECT_TRUE(is_finite(3e38f) && !is_finite(inf) && !is_finite(nan));
  EXPECT_EQ(fma_f(1 + 0x1p-12f, 1 + 0x1p-12f, -1), 0x1p-11f + 0x1p-24f);
}

}  // namespace
}  // namespace cudabk
