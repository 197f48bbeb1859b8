// mmsf_group's kernels, launched on the emulated device: products of small integers, exact whatever the order of the
// sums, with rings that go round several times.
#include <fmt/format.h>

#include <map>
#include <random>

#include "graph/dtype.h"
#include "graph/half.h"
#include "kernel_test.h"
#include "mmsf/group_args.h"
#include "ops/mul_mat_families.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kGroupSeed = 20261202;
constexpr int kCols = 32, kGroups = 1, kDepth = 128, kStages = 3;

struct GroupCase {
  DType type;
  int32_t m, n, k;
  int32_t weight_batch, batch;
  int parts;
  int x_unit = 1;  // activations are multiples of it
};

std::string name_of(const testing::TestParamInfo<GroupCase>& info) {
  const GroupCase& c = info.param;
  return fmt::format("{}_m{}_n{}_k{}_batch{}_parts{}_unit{}", dtype_name(c.type), c.m, c.n, c.k, c.batch, c.parts,
                     c.x_unit);
}

std::vector<int> integers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<int>(random() % 9) - 4);
  }
  return values;
}

class MmsfGroup : public KernelTest<GroupCase> {
 protected:
  MmsfGroup() : KernelTest(kGroupSeed, "host@sm_90a") {}

  void pack(const GroupCase& c, const Memory& x, const Memory& tiles, const Memory& scale) {
    PackTilesArgs a{};
    a.x = at<const uint8_t>(x), a.tiles = at<uint8_t>(tiles), a.scale = at<float>(scale);
    a.nb1 = int64_t{c.k} * 4, a.nb2 = a.nb1 * c.n, a.nb3 = a.nb2 * c.batch;
    a.n = c.n, a.b2 = c.batch, a.batch = c.batch, a.k = c.k, a.parts = c.parts;
    const auto n = static_cast<uint32_t>(c.n), units = static_cast<uint32_t>((c.k + kFragDepth - 1) / kFragDepth);
    if (c.type == DType::f16) {
      run("frag/tile_columns.h", "pack_tiles<true, 1, false>", {n, static_cast<uint32_t>(c.parts), 1},
          kPackTilesThreads, 64, a);
    } else {
      run("mmsf/group_columns.h", "pack_bf16_tiles<true>", {(n + 7) / 8, units, 1}, kGroupPackThreads, 0, a);
    }
  }
  std::vector<float> sums_of(const GroupCase& c, const std::vector<int>& w, const std::vector<int>& x);
};

// The sums of all parts.
std::vector<float> MmsfGroup::sums_of(const GroupCase& c, const std::vector<int>& w, const std::vector<int>& x) {
  std::vector<uint16_t> halves;
  for (const int v : w) {
    const auto f = static_cast<float>(v);
    halves.push_back(c.type == DType::f16 ? f32_to_f16(f) : f32_to_bf16(f));
  }
  std::vector<float> floats;
  for (const int v : x) {
    floats.push_back(static_cast<float>(v * c.x_unit));
  }
  const int64_t total = int64_t{c.m} * c.n * c.batch, units = (c.k + kFragDepth - 1) / kFragDepth;
  const Memory weights = on_device(halves), columns = on_device(floats);
  // Columns that are never packed are never used, whatever they hold.
  const int64_t elements = int64_t{c.batch} * ((c.n + 7) / 8 * 8) * units * kFragDepth;
  const Memory tiles = on_device(std::vector<uint16_t>(static_cast<size_t>(elements), 0xffff));
  const Memory scale = device_->allocate(int64_t{c.batch} * c.parts * c.n * 4).value(),
               sums = device_->allocate(total * c.parts * 4).value();
  pack(c, columns, tiles, scale);
  GroupArgs a{};
  a.weights = at<const uint8_t>(weights), a.x = at<const uint8_t>(tiles);
  a.x_scale = at<const float>(scale), a.dst = at<float>(sums);
  a.batch = {c.batch, c.batch, c.batch / c.weight_batch, 1};
  a.row_stride = int64_t{c.k} * 2, a.stride2 = a.row_stride * c.m;
  a.m = c.m, a.n = c.n, a.k = c.k, a.parts = c.parts;
  const auto blocks = [](int64_t count, int of) { return static_cast<uint32_t>((count + of - 1) / of); };
  run("mmsf/group.h",
      fmt::format("mmsf_group<DType::{}, {}, {}, {}, {}, 1, {}>", dtype_name(c.type), kCols, kGroups, kDepth, kStages,
                  c.k % kDepth == 0),
      {blocks(c.m, kGroups * 64), 1, static_cast<uint32_t>(c.parts)}, group_threads(kGroups),
      group_shared_bytes(kCols, kGroups, kDepth, kStages), a);
  return added(on_host<float>(sums), c.parts);
}

TEST_P(MmsfGroup, ProductsAreExact) {
  const GroupCase& c = GetParam();
  const std::vector<int> w = integers(int64_t{c.m} * c.k * c.weight_batch, kGroupSeed);
  const std::vector<int> x = integers(int64_t{c.n} * c.k * c.batch, kGroupSeed + 1);
  const std::vector<float> sums = sums_of(c, w, x);
  for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
    const int64_t row = i % c.m, col = i / c.m, slice = col / c.n / (c.batch / c.weight_batch);
    int64_t expected = 0;
    for (int e = 0; e < c.k; ++e) {
      expected += w[static_cast<size_t>((slice * c.m + row) * c.k + e)] * x[static_cast<size_t>(col * c.k + e)];
    }
    ASSERT_EQ(sums[static_cast<size_t>(i)], static_cast<float>(expected * c.x_unit))
        << "row " << row << ", column " << col;
  }
}

// Whole stages and ragged ones; rows, columns and parts that are no whole blocks; a part without elements; batches;
// activations that are too large for f16.
INSTANTIATE_TEST_SUITE_P(
    Cases, MmsfGroup,
    testing::Values(GroupCase{DType::bf16, 64, 32, 2048, 1, 1, 1}, GroupCase{DType::bf16, 75, 17, 2056, 1, 1, 2},
                    GroupCase{DType::f16, 129, 9, 520, 1, 1, 4}, GroupCase{DType::f16, 40, 30, 1832, 1, 2, 2, 32768},
                    GroupCase{DType::f16, 64, 25, 512, 2, 4, 1}, GroupCase{DType::bf16, 5, 16, 40, 1, 1, 1},
                    GroupCase{DType::f16, 5, 16, 24, 1, 1, 1}),
    name_of);

Support group_support(std::map<std::string, int64_t> dims, const Config& config, const DeviceInfo& device) {
  dims.insert({{"m", 4096}, {"n", 64}, {"k", 14336}, {"batch", 1}, {"f32_precision", 0}, {"x_f16", 0}, {"w_dense", 1}});
  for (const Family& family : mul_mat_families()) {
    if (family.name == "mmsf_group") {
      return family.applicable({"mul_mat", "f16", {dims.begin(), dims.end()}}, config, device);
    }
  }
  return Support::no("no such family");
}

TEST(MmsfGroupRules, WhatCannotRunIsRefused) {
  DeviceInfo info = open_device("host", {}).value()->info();
  info.arch = "sm_90a", info.cc = 90, info.emulated = false, info.max_shared_bytes = 232448;
  const Config good{{"cols", 64}, {"groups", 2}, {"depth", 128}, {"split", 4}, {"share", 2}};
  EXPECT_TRUE(group_support({}, good, info));
  EXPECT_FALSE(group_support({{"n", 65}}, good, info)) << "columns";
  EXPECT_FALSE(group_support({{"n", 16}}, good, info)) << "blocks of too many columns";
  EXPECT_FALSE(group_support({{"k", 14340}}, good, info)) << "rows on multiples of 8 bytes";
  EXPECT_FALSE(group_support({{"w_dense", 0}}, good, info)) << "rows with gaps";
  EXPECT_FALSE(group_support({{"x_f16", 1}}, good, info)) << "f16 activations";
  EXPECT_FALSE(group_support({{"f32_precision", 1}}, good, info)) << "precision";
  info.max_shared_bytes = 99 * 1024;
  EXPECT_FALSE(group_support({}, good, info)) << "shared memory";
  info.max_shared_bytes = 232448, info.arch = "sm_100a";
  EXPECT_FALSE(group_support({}, good, info)) << "other warp groups";
}

}  // namespace
}  // namespace cudabk::test
