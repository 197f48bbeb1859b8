// Regions, and whole checks of a product in host memory with planted errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "graph/init.h"
#include "leaf_memory.h"
#include "verify/verify.h"

namespace cudabk::test {
namespace {

Tensor shaped(Shape ne) {
  Tensor t;
  t.ne = ne;
  t.nb = dense_strides(t.type, ne);
  return t;
}

TEST(Region, SmallResultsAreWhole) {
  const Tensor t = shaped({100, 7, 3, 1});
  EXPECT_EQ(sample_region(t, 1).count(), 2100);
  EXPECT_EQ(sample_region(shaped({0, 7, 1, 1}), 1).count(), 0);
}

TEST(Region, LargeResultsHaveEdgesAndRandomElements) {
  const Tensor t = shaped({4099, 513, 9, 1});
  const Region region = sample_region(t, 1);
  const std::set<int64_t> rows(region.index[0].begin(), region.index[0].end());
  for (const int64_t edge : {0, 7, 8, 15, 16, 63, 64, 127, 128, 4095, 4096, 4097, 4098}) {
    EXPECT_TRUE(rows.contains(edge)) << edge;
  }
  EXPECT_GE(rows.size(), 64U + 13U);
  const std::set<int64_t> cols(region.index[1].begin(), region.index[1].end());
  for (const int64_t edge : {0, 7, 8, 127, 128, 511, 512}) {
    EXPECT_TRUE(cols.contains(edge)) << edge;
  }
  EXPECT_GE(cols.size(), 16U + 7U);
  EXPECT_EQ(region.index[2].size(), 4U);
  EXPECT_EQ(region.index[2].back(), 8);
  for (int d = 0; d < 4; ++d) {
    EXPECT_TRUE(std::is_sorted(region.index[d].begin(), region.index[d].end()));
    EXPECT_LT(region.index[d].back(), t.ne[d]);
  }
  EXPECT_EQ(region.index, sample_region(t, 1).index);
  EXPECT_NE(region.index, sample_region(t, 2).index);
}

// A product of 128 x 32 with k = 512; `device` starts as the right answer in f32.
class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    a = *graph.leaf("a", DType::q4_K, {512, 128, 1, 1}, Usage::kWeights);
    b = *graph.leaf("b", DType::f32, {512, 32, 1, 1});
    y = *graph.node("mul_mat", {}, DType::f32, {128, 32, 1, 1}, {a, b});
    for (const Tensor* leaf : {a, b}) {
      auto& bytes = leaves.memory[leaf];
      bytes.resize(static_cast<size_t>(byte_size(*leaf)));
      ASSERT_TRUE(fill_random({.type = leaf->type, .stddev = 1, .seed = tensor_seed(5, leaf->id)}, bytes).ok());
    }
    const auto right = evaluate_reference(*y, Region::whole(*y), leaves);
    ASSERT_TRUE(right.ok()) << right.error().message;
    device.assign(right->begin(), right->end());
  }
  OutputCheck check() {
    auto result = check_output(*y, std::as_bytes(std::span(device)), leaves, {.bound = 5e-4});
    EXPECT_TRUE(result.ok()) << result.error().message;
    return std::move(result).value();
  }

  Graph graph;
  Tensor *a = nullptr, *b = nullptr, *y = nullptr;
  LeafMemory leaves;
  std::vector<float> device;
};

TEST_F(CheckTest, TheRightAnswerPasses) {
  const OutputCheck c = check();
  EXPECT_TRUE(c.comparison.pass()) << c.text();
  EXPECT_EQ(c.comparison.count, 128 * 32);
  EXPECT_LT(c.comparison.nmse, 1e-12);
}

TEST_F(CheckTest, OneWrongElementIsNamed) {
  device[128 * 17 + 5] += 100;
  const OutputCheck c = check();
  EXPECT_FALSE(c.comparison.pass());
  EXPECT_EQ(c.worst_index, (std::array<int64_t, 4>{5, 17, 0, 0}));
  VerifyReport report;
  report.outputs = {c};
  ASSERT_FALSE(report.status().ok());
  EXPECT_EQ(report.status().error().kind, ErrorKind::kWrongOutput);
  EXPECT_NE(report.status().error().message.find("[5,17,0,0]"), std::string::npos);
}

TEST_F(CheckTest, NanInfinityAndSwappedRowsFail) {
  const auto right = device;
  device[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(check().comparison.pass());
  device = right;
  device[3] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(check().comparison.pass());
  device = right;
  for (int j = 0; j < 32; ++j) {
    std::swap(device[static_cast<size_t>(128 * j + 63)], device[static_cast<size_t>(128 * j + 64)]);
  }
  EXPECT_FALSE(check().comparison.pass());
}

// The reference of a chain computes what lies between the leaves and the output, through views, and rounds it to the
// type in between.
TEST_F(CheckTest, ChainsAndViewsAreComputedFromTheLeaves) {
  Tensor* half = *graph.view(y, {64, 32, 1, 1}, y->nb, 64 * 4);
  Tensor* weights = *graph.leaf("w", DType::f32, {64, 16, 1, 1}, Usage::kWeights);
  Tensor* z = *graph.node("mul_mat", {}, DType::f32, {16, 32, 1, 1}, {weights, half});
  auto& w = leaves.memory[weights];
  w.resize(static_cast<size_t>(byte_size(*weights)));
  ASSERT_TRUE(fill_random({.type = DType::f32, .stddev = 1, .seed = 9}, w).ok());
  const auto got = evaluate_reference(*z, Region::whole(*z), leaves);
  ASSERT_TRUE(got.ok()) << got.error().message;
  std::vector<float> wf(64 * 16);
  std::memcpy(wf.data(), w.data(), w.size());
  for (int j = 0; j < 32; ++j) {
    for (int i = 0; i < 16; ++i) {
      double want = 0;
      for (int c = 0; c < 64; ++c) {
        want +=
            static_cast<double>(wf[static_cast<size_t>(64 * i + c)]) * device[static_cast<size_t>(128 * j + 64 + c)];
      }
      ASSERT_NEAR((*got)[static_cast<size_t>(16 * j + i)], want, 0.01);
    }
  }
}

TEST_F(CheckTest, TransposedViewsOfResults) {
  Tensor* turned = *graph.transpose(y);
  const auto got = evaluate_reference(*turned, Region::whole(*turned), leaves);
  ASSERT_TRUE(got.ok()) << got.error().message;
  for (size_t j = 0; j < 32; ++j) {
    for (size_t i = 0; i < 128; ++i) {
      ASSERT_NEAR((*got)[32 * i + j], device[128 * j + i], 1e-3);
    }
  }
}

TEST_F(CheckTest, MissingLeavesAreAnError) {
  leaves.memory.erase(b);
  const auto result = check_output(*y, std::as_bytes(std::span(device)), leaves, {.bound = 5e-4});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("'b'"), std::string::npos);
}

}  // namespace
}  // namespace cudabk::test
