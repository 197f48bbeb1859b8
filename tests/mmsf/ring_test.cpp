// mmsf's kernels with a ring of weights, launched on the emulated device with fewer groups of blocks than strips, so
// that every ring goes round: products of small integers, which are exact whatever the order of the sums.
#include <fmt/format.h>

#include <random>

#include "graph/half.h"
#include "kernel_test.h"
#include "mmsf/args.h"
#include "ops/mul_mat_families.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kRingSeed = 20261201;

struct RingCase {
  DType weights, x;
  int32_t m, n, k;
  int32_t weight_batch, batch;
  int chunks, stage, slots;
};

std::string name_of(const testing::TestParamInfo<RingCase>& info) {
  const RingCase& c = info.param;
  return fmt::format("{}_{}_m{}_n{}_k{}_batch{}_chunks{}_stage{}_slots{}", dtype_name(c.weights), dtype_name(c.x), c.m,
                     c.n, c.k, c.batch, c.chunks, c.stage, c.slots);
}

// Whole numbers of -4 to 4, and their bytes as `type`.
struct Integers {
  std::vector<int> values;
  std::vector<std::byte> bytes;

  Integers(DType type, int64_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < count; ++i) {
      const int v = static_cast<int>(random() % 9) - 4;
      const auto f = static_cast<float>(v);
      const uint16_t half = type == DType::f16 ? f32_to_f16(f) : f32_to_bf16(f);
      const auto* from =
          type == DType::f32 ? reinterpret_cast<const std::byte*>(&f) : reinterpret_cast<const std::byte*>(&half);
      values.push_back(v);
      bytes.insert(bytes.end(), from, from + block_bytes(type));
    }
  }
};

class MmsfRing : public KernelTest<RingCase> {
 protected:
  MmsfRing() : KernelTest(kRingSeed) {}
};

TEST_P(MmsfRing, ProductsAreExact) {
  const RingCase& c = GetParam();
  constexpr int kWarps = 8, kGroups = 2;
  const int held = kWarps * c.chunks * kMmsfChunk, splits = (c.k + held - 1) / held, tiles = mmsf_tiles(c.n);
  const Integers w(c.weights, int64_t{c.m} * c.k * c.weight_batch, kRingSeed);
  const Integers x(c.x, int64_t{c.n} * c.k * c.batch, kRingSeed + 1);
  const int64_t total = int64_t{c.m} * c.n * c.batch;
  const Memory weights = on_device(w.bytes), columns = on_device(x.bytes),
               sums = device_->allocate(total * splits * 4).value();
  MmsfArgs a{};
  a.weights = at<const uint8_t>(weights);
  a.x = at<const uint8_t>(columns);
  a.dst = at<float>(sums);
  a.batch = {c.batch, c.batch, c.batch / c.weight_batch, 1};
  a.row_stride = c.k * 2;
  a.stride2 = a.row_stride * c.m;
  a.x_col_stride = c.k * block_bytes(c.x);
  a.x_stride2 = a.x_col_stride * c.n;
  a.m = c.m, a.n = c.n, a.k = c.k, a.splits = splits;
  const std::string entry =
      fmt::format("mmsf_ring<DType::{}, DType::{}, {}, {}, {}, {}, {}, {}>", dtype_name(c.weights), dtype_name(c.x),
                  tiles, c.chunks, kWarps, c.stage, c.slots, c.k % held == 0);
  run("mmsf/ring.h", entry, {static_cast<uint32_t>(kGroups * splits), 1, 1}, kWarps * 32,
      mmsf_ring_shared_bytes(kWarps, tiles, c.stage, c.slots), a);
  const std::vector<float> got = added(on_host<float>(sums), splits);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t row = i % c.m, col = i / c.m, slice = col / c.n / (c.batch / c.weight_batch);
    int expected = 0;
    for (int e = 0; e < c.k; ++e) {
      expected +=
          w.values[static_cast<size_t>((slice * c.m + row) * c.k + e)] * x.values[static_cast<size_t>(col * c.k + e)];
    }
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(expected)) << "row " << row << ", column " << col;
  }
}

// Whole parts of k; a part that ends within a stage, within a chunk of 32, and before a warp begins; more stages in
// the ring than a block has; batches, so that the ring goes on where the last entry left it.
INSTANTIATE_TEST_SUITE_P(Cases, MmsfRing,
                         testing::Values(RingCase{DType::f16, DType::f32, 75, 5, 1024, 1, 1, 4, 4, 2},
                                         RingCase{DType::bf16, DType::f32, 100, 9, 1096, 1, 1, 4, 4, 2},
                                         RingCase{DType::f16, DType::f16, 40, 17, 1024, 1, 3, 4, 4, 2},
                                         RingCase{DType::bf16, DType::f32, 90, 29, 264, 2, 4, 4, 4, 2},
                                         RingCase{DType::bf16, DType::f32, 75, 3, 1304, 3, 3, 4, 2, 3},
                                         RingCase{DType::bf16, DType::f32, 17, 16, 2048, 1, 2, 4, 2, 3},
                                         RingCase{DType::f16, DType::f32, 5, 32, 40, 1, 1, 4, 4, 2}),
                         name_of);

Problem product_of(int64_t n) {
  return {"mul_mat", "f16", {{"m", 4096}, {"n", n}, {"k", 14336}, {"batch", 1}, {"f32_precision", 0}}};
}

Support ring_support(int64_t n, const Config& config, const DeviceInfo& device) {
  for (const Family& family : mul_mat_families()) {
    if (family.name == "mmsf_ring") {
      return family.applicable(product_of(n), config, device);
    }
  }
  return Support::no("no such family");
}

TEST(MmsfRingRules, WhatCannotRunIsRefused) {
  const auto device = open_device("host", {}).value();
  DeviceInfo info = device->info();
  info.cc = 90, info.emulated = false, info.max_shared_bytes = 232448;
  const Config good{{"warps", 8}, {"chunks", 8}, {"stage", 4}, {"slots", 4}};
  Config many = good;
  many["chunks"] = 4;
  EXPECT_TRUE(ring_support(32, many, info));
  EXPECT_FALSE(ring_support(32, good, info)) << "registers of chunks";
  EXPECT_FALSE(ring_support(33, many, info)) << "columns";
  Config large = good;
  large["warps"] = 16, large["slots"] = 2;
  EXPECT_TRUE(ring_support(8, large, info));
  EXPECT_FALSE(ring_support(16, large, info)) << "registers of activations";
  Config odd = good;
  odd["stage"] = 3;
  EXPECT_FALSE(ring_support(8, odd, info)) << "a part of k that is no whole number of stages";
  info.max_shared_bytes = 99 * 1024;
  EXPECT_FALSE(ring_support(8, good, info)) << "shared memory";
  info.max_shared_bytes = 232448, info.cc = 75;
  EXPECT_FALSE(ring_support(8, good, info)) << "tensor cores";
}

}  // namespace
}  // namespace cudabk::test
