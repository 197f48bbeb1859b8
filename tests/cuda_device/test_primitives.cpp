// Each primitive of the platform layer on the GPU against a plain loop.
#include <gtest/gtest.h>

#include "cuda_device/gpu.h"
#include "cuda_device/numbers.h"
#include "probe/primitives_args.h"

namespace cudabk {
namespace {

constexpr const char* kHeader = "probe/primitives.h";

struct FormName {
  MmaForm form;
  const char* name;
};
constexpr FormName kForms[] = {
    {MmaForm::kF16x16x8x16, "kF16x16x8x16"}, {MmaForm::kBf16x16x8x16, "kBf16x16x8x16"},
    {MmaForm::kF16x16x8x8, "kF16x16x8x8"},   {MmaForm::kS8x16x8x32, "kS8x16x8x32"},
    {MmaForm::kS8x16x8x16, "kS8x16x8x16"},   {MmaForm::kS8x8x8x16, "kS8x8x8x16"},
};

class Mma : public Gpu, public testing::WithParamInterface<FormName> {};

// One element of a row of A or a column of B.
double element(MmaForm form, const uint8_t* row, int k) {
  if (mma_is_integer(form)) {
    return static_cast<int8_t>(row[k]);
  }
  uint16_t bits;
  std::memcpy(&bits, row + 2 * k, 2);
  return form == MmaForm::kBf16x16x8x16 ? bf16_value(bits) : f16_value(bits);
}

TEST_P(Mma, EqualsALoop) {
  const auto [form, name] = GetParam();
  if (form == MmaForm::kBf16x16x8x16 && device->info().cc < 80) {
    GTEST_SKIP() << "bf16 tensor cores need sm_80, this is " << device->info().arch;
  }
  const int rows = mma_rows(form), bytes = mma_k_bytes(form), k = mma_is_integer(form) ? bytes : bytes / 2;
  std::vector<uint8_t> a(rows * bytes), b(8 * bytes);
  std::vector<uint32_t> d(rows * 8);
  std::uniform_int_distribution<int> byte(-128, 127), small(-40, 40);
  const auto fill = [&](std::vector<uint8_t>& values) {
    for (size_t i = 0; i < values.size(); i += 2) {
      uint16_t bits = static_cast<uint16_t>((byte(random) & 0xff) | (byte(random) & 0xff) << 8);
      if (!mma_is_integer(form)) {  // exact in both half types, and so are all sums
        bits = form == MmaForm::kBf16x16x8x16 ? bf16_bits(small(random)) : f16_bits(small(random));
      }
      std::memcpy(&values[i], &bits, 2);
    }
  };
  fill(a);
  fill(b);
  for (uint32_t& value : d) {
    const int start = small(random);
    value = mma_is_integer(form) ? static_cast<uint32_t>(start) : std::bit_cast<uint32_t>(static_cast<float>(start));
  }
  const Memory device_a = to_device(a), device_b = to_device(b), device_d = to_device(d);
  const Kernel* kernel = load(kHeader, std::string("probe_mma<MmaForm::") + name + ">", sizeof(ProbeMmaArgs));
  ASSERT_NE(kernel, nullptr);
  run(make_launch(kernel, ProbeMmaArgs{as<uint8_t>(device_a), as<uint8_t>(device_b), as<uint32_t>(device_d)}, 1, 32));
  const auto results = to_host<uint32_t>(device_d);
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < 8; ++col) {
      const uint32_t start = d[row * 8 + col], got = results[row * 8 + col];
      double expected = mma_is_integer(form) ? static_cast<int32_t>(start) : std::bit_cast<float>(start);
      for (int i = 0; i < k; ++i) {
        expected += element(form, &a[row * bytes], i) * element(form, &b[col * bytes], i);
      }
      const double value = mma_is_integer(form) ? static_cast<int32_t>(got) : std::bit_cast<float>(got);
      EXPECT_EQ(value, expected) << name << " row " << row << " column " << col;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Mma, testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

class Ldmatrix : public Gpu, public testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(Ldmatrix, GivesEachLaneItsElements) {
  const auto [count, transposed] = GetParam();
  std::vector<uint16_t> from(64 * count);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<uint16_t>(i * 257);
  }
  const Memory source = to_device(from), target = to_device(std::vector<uint32_t>(32 * count));
  const Kernel* kernel =
      load(kHeader, "probe_ldmatrix<" + std::to_string(count) + ", " + (transposed ? "true" : "false") + ">",
           sizeof(ProbeMoveArgs));
  ASSERT_NE(kernel, nullptr);
  run(make_launch(kernel, ProbeMoveArgs{as<uint8_t>(source), as<uint8_t>(target), 0}, 1, 32, 128 * count));
  const auto results = to_host<uint32_t>(target);
  for (int i = 0; i < count; ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      const auto at = [&](int row, int col) { return from[64 * i + 8 * row + col]; };
      const uint32_t expected =
          transposed ? pair(at(2 * t, g), at(2 * t + 1, g)) : pair(at(g, 2 * t), at(g, 2 * t + 1));
      EXPECT_EQ(results[32 * i + lane], expected) << "matrix " << i << " lane " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Ldmatrix, testing::Combine(testing::Values(1, 2, 4), testing::Bool()));

TEST_F(Gpu, AsyncCopiesArriveAndInvalidOnesAreZero) {
  for (const int bytes : {4, 8, 16}) {
    std::vector<uint8_t> from(128 * bytes);
    for (uint8_t& value : from) {
      value = static_cast<uint8_t>(random() | 1);
    }
    const int valid = 41;
    const Memory source = to_device(from), target = to_device(std::vector<uint8_t>(from.size(), 0xee));
    const Kernel* kernel = load(kHeader, "probe_async<" + std::to_string(bytes) + ">", sizeof(ProbeMoveArgs));
    ASSERT_NE(kernel, nullptr);
    run(make_launch(kernel, ProbeMoveArgs{as<uint8_t>(source), as<uint8_t>(target), valid}, 1, 64, 128 * bytes));
    const auto results = to_host<uint8_t>(target);
    for (size_t i = 0; i < from.size(); ++i) {
      const int thread = static_cast<int>(i) / bytes % 64;
      EXPECT_EQ(results[i], thread < valid ? from[i] : 0) << bytes << "-byte copies, byte " << i;
    }
  }
}

TEST_F(Gpu, LoadsAndStoresOfEveryWidth) {
  for (const auto& [type, bytes] : std::vector<std::pair<std::string, int>>{
           {"uint8_t", 1}, {"f16", 2}, {"float", 4}, {"f32x2", 8}, {"u32x4", 16}, {"int8_t", 1}, {"u32x2", 8}}) {
    std::vector<uint8_t> from(64 * bytes);
    for (uint8_t& value : from) {
      value = static_cast<uint8_t>(random());
    }
    const Memory source = to_device(from), target = to_device(std::vector<uint8_t>(from.size()));
    const Kernel* kernel = load(kHeader, "probe_move<" + type + ">", sizeof(ProbeMoveArgs));
    ASSERT_NE(kernel, nullptr);
    run(make_launch(kernel, ProbeMoveArgs{as<uint8_t>(source), as<uint8_t>(target), 0}, 1, 32));
    EXPECT_EQ(to_host<uint8_t>(target), from) << type;
  }
}

int dot4(uint32_t a, uint32_t b, bool a_unsigned) {
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    const int left = a_unsigned ? static_cast<uint8_t>(a >> (8 * i)) : static_cast<int8_t>(a >> (8 * i));
    sum += left * static_cast<int8_t>(b >> (8 * i));
  }
  return sum;
}

uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = a | uint64_t{b} << 32;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
}

// Both halves of a packed result; double holds every product and sum of halves exactly.
template <class Op>
uint32_t packed_f16(uint32_t a, uint32_t b, uint32_t c, Op op) {
  const auto half = [&](int shift) {
    return f16_bits(op(double{f16_value(static_cast<uint16_t>(a >> shift))},
                       double{f16_value(static_cast<uint16_t>(b >> shift))},
                       double{f16_value(static_cast<uint16_t>(c >> shift))}));
  };
  return pair(half(0), half(16));
}

void expect_close(float got, double expected, double relative, const char* what, float x) {
  EXPECT_NEAR(got, expected, std::abs(expected) * relative) << what << " of " << x;
}

// Everything that has one right answer, bit for bit.
void check_exact(const std::vector<uint32_t>& r, float x, float y, uint32_t u, uint32_t v) {
  const uint32_t hx = pair(f16_bits(x), f16_bits(y)), hy = pair(f16_bits(y), f16_bits(0.5));
  const uint32_t bx = pair(bf16_bits(x), bf16_bits(y));
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  EXPECT_EQ(r[0], f16_bits(x)) << x;
  EXPECT_EQ(r[1], bf16_bits(x)) << x;
  if (const float half = f16_value(static_cast<uint16_t>(u)); !std::isnan(half)) {
    EXPECT_EQ(r[2], bits(half));
  }
  EXPECT_EQ(r[3], u << 16);
  EXPECT_EQ(r[4], hx);
  EXPECT_EQ(r[5], bx);
  EXPECT_EQ(static_cast<int32_t>(r[6]), static_cast<int32_t>(std::nearbyint(x))) << x;
  EXPECT_EQ(static_cast<int32_t>(r[7]), dot4(u, v, false) + 7);
  EXPECT_EQ(static_cast<int32_t>(r[8]), dot4(u, v, true) - 7);
  EXPECT_EQ(r[9], permuted(u, v, u & 0x7777));
  EXPECT_EQ(r[10], static_cast<uint32_t>((u | uint64_t{v} << 32) >> 5));
  EXPECT_EQ(r[11], packed_f16(hx, hy, hx, [](double a, double b, double c) { return a * b + c; })) << x << " " << y;
  EXPECT_EQ(r[12], packed_f16(hx, hy, hx, [](double a, double b, double) { return a * b; }));
  EXPECT_EQ(r[13], packed_f16(hx, hy, hx, [](double a, double b, double) { return a + b; }));
  EXPECT_EQ(r[14], packed_f16(hx, hy, hx, [](double a, double b, double) { return a - b; }));
  EXPECT_EQ(r[16] & 0xffff, bf16_bits(bf16_value(bf16_bits(x)) * bf16_value(bf16_bits(y))));
  EXPECT_EQ(r[17], bits(x / y)) << x << " / " << y;
  EXPECT_EQ(r[18], bits(std::fma(x, y, 1.0f)));
  EXPECT_EQ(r[22], (u & 0x7f800000u) != 0x7f800000u ? 1u : 0u);
  EXPECT_EQ(r[23], bits(std::max(x, y)));
  EXPECT_EQ(r[24], bits(std::min(x, y)));
  EXPECT_EQ(r[25], bits(std::abs(x)));
}

void check_approximate(const std::vector<uint32_t>& r, float x, float y) {
  const auto value = [&](int i) { return std::bit_cast<float>(r[i]); };
  const float bx = bf16_value(bf16_bits(x)), by = bf16_value(bf16_bits(y));
  expect_close(bf16_value(static_cast<uint16_t>(r[15])), double{bx} * by + bx, 1.0 / 256, "bf16x2_fma", x);
  expect_close(value(19), 1 / std::sqrt(std::abs(double{x})), 1e-6, "inverse_sqrt", x);
  expect_close(value(20), std::exp(double{x}), 1e-6, "exp_f", x);
  expect_close(value(21), std::exp(double{x}), 1e-5, "fast_exp", x);
}

TEST_F(Gpu, ValuesEqualTheHost) {
  constexpr int kCount = 1000, kThreads = 64;
  std::vector<float> x(kCount), y(kCount);
  std::vector<uint32_t> u(kCount), v(kCount);
  std::normal_distribution<float> normal(0, 3);
  for (int i = 0; i < kCount; ++i) {
    x[i] = normal(random);
    y[i] = normal(random);
    u[i] = static_cast<uint32_t>(random());
    v[i] = static_cast<uint32_t>(random());
  }
  x[0] = 0.5f, x[1] = 1.5f, x[2] = -2.5f;               // ties of the rounding to int
  x[3] = 1.0f + 1.0f / 2048, x[4] = 1.0f + 1.0f / 256;  // ties of f16 and bf16
  u[5] = 0x7f800000, u[6] = 0xffc00000, u[7] = 0x00000001, u[8] = 0x0000fbff;
  const Memory dx = to_device(x), dy = to_device(y), du = to_device(u), dv = to_device(v);
  const Memory results = to_device(std::vector<uint32_t>(kProbeValueCount * kCount));
  const Kernel* kernel = load(kHeader, "probe_values<64>", sizeof(ProbeValuesArgs));
  ASSERT_NE(kernel, nullptr);
  run(make_launch(
      kernel,
      ProbeValuesArgs{as<float>(dx), as<float>(dy), as<uint32_t>(du), as<uint32_t>(dv), as<uint32_t>(results), kCount},
      (kCount + kThreads - 1) / kThreads, kThreads));
  const auto all = to_host<uint32_t>(results);
  for (int i = 0; i < kCount; ++i) {
    std::vector<uint32_t> row(kProbeValueCount);
    for (int r = 0; r < kProbeValueCount; ++r) {
      row[r] = all[r * kCount + i];
    }
    check_exact(row, x[i], y[i], u[i], v[i]);
    check_approximate(row, x[i], y[i]);
    ASSERT_FALSE(HasFailure()) << "element " << i << " seed " << kSeed;
  }
}

TEST_F(Gpu, ShufflesVotesAndAtomics) {
  constexpr int kThreads = 128;
  std::vector<float> x(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    x[i] = static_cast<float>(i);
  }
  x[70] = 2000;
  const Memory dx = to_device(x), floats = to_device(std::vector<float>(4 * kThreads));
  const Memory integers = to_device(std::vector<int32_t>(6 * kThreads));
  const Memory sums = to_device(std::vector<uint32_t>(3));
  const Kernel* kernel = load(kHeader, "probe_warp<128>", sizeof(ProbeWarpArgs));
  ASSERT_NE(kernel, nullptr);
  run(make_launch(kernel,
                  ProbeWarpArgs{as<float>(dx), as<float>(floats), as<int32_t>(integers), as<float>(sums),
                                as<int32_t>(sums) + 1, as<uint32_t>(sums) + 2},
                  1, kThreads, kThreads / 32 * sizeof(float)));
  const auto f = to_host<float>(floats);
  const auto n = to_host<int32_t>(integers);
  double total = 0;
  for (const float value : x) {
    total += value;
  }
  for (int i = 0; i < kThreads; ++i) {
    const int base = i / 32 * 32, lane = i % 32;
    EXPECT_EQ(f[i], x[base + 5]);
    EXPECT_EQ(f[kThreads + i], x[base + (lane ^ 3)]);
    EXPECT_EQ(f[2 * kThreads + i], lane + 4 < 32 ? x[i + 4] : x[i]);
    EXPECT_EQ(f[3 * kThreads + i], total);
    const int expected[6] = {lane, i / 32, i / 32 == 2 ? 1 : 0, 1, 1, 0};
    for (int r = 0; r < 6; ++r) {
      EXPECT_EQ(n[r * kThreads + i], expected[r]) << "row " << r << " thread " << i;
    }
  }
  EXPECT_EQ(to_host<float>(sums)[0], kThreads);
  EXPECT_EQ(to_host<int32_t>(sums)[1], -kThreads);
  EXPECT_EQ(to_host<uint32_t>(sums)[2], 32u * (1 + 33 + 65 + 97));
}

}  // namespace
}  // namespace cudabk
