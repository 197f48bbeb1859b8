// Reading tensors through views, products with broadcast and permuted operands, regions.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/init.h"
#include "leaf_memory.h"
#include "reference/reference.h"

namespace cudabk::test {
namespace {

class ValuesTest : public testing::Test {
 protected:
  double at(const Tensor& t, int64_t i0, int64_t i1 = 0, int64_t i2 = 0, int64_t i3 = 0) const {
    double value = NAN;
    const Status status = leaves.read_row(t, i1, i2, i3, i0, {&value, 1});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return value;
  }
  Tensor* counting_leaf(Shape ne) {
    Tensor* t = *graph.leaf("x", DType::f32, ne);
    std::vector<float> values(static_cast<size_t>(element_count(*t)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i);
    }
    leaves.set(t, values);
    return t;
  }

  Graph graph;
  LeafMemory leaves;
};

TEST_F(ValuesTest, ViewsOffsetsAndStrides) {
  Tensor* x = counting_leaf({6, 5, 4, 3});
  EXPECT_EQ(at(*x, 3, 2, 1, 2), 3 + 6 * 2 + 30 * 1 + 120 * 2);
  Tensor* part = *graph.view(x, {2, 3, 2, 1}, {4, 2 * 6 * 4, x->nb[3], x->nb[3]}, 4 * 7);
  EXPECT_EQ(at(*part, 1, 2, 1), 7 + 1 + 12 * 2 + 120);
  Tensor* nested = *graph.view(part, {2, 1, 1, 1}, part->nb, part->nb[1]);
  EXPECT_EQ(at(*nested, 1), 7 + 12 + 1);
  Tensor* turned = *graph.transpose(x);
  EXPECT_EQ(at(*turned, 2, 3, 1, 2), at(*x, 3, 2, 1, 2));
  Tensor* flat = *graph.reshape(x, {60, 6, 1, 1});
  EXPECT_EQ(at(*flat, 59, 5), 359);
}

TEST_F(ValuesTest, PermuteMovesTheRightDimensions) {
  Tensor* x = counting_leaf({6, 5, 4, 3});
  Tensor* p = *graph.permute(x, {2, 0, 3, 1});  // old dim 0 is dim 2, 1 is 0, 2 is 3, 3 is 1
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(at(*p, j, 2, i, 3), at(*x, i, j, 3, 2));
    }
  }
}

TEST_F(ValuesTest, PlainTypes) {
  Tensor* i32 = *graph.leaf("i32", DType::i32, {3, 1, 1, 1});
  leaves.set<int32_t>(i32, {-7, 2147483647, 16777217});
  EXPECT_EQ(at(*i32, 0), -7);
  EXPECT_EQ(at(*i32, 1), 2147483647.0);
  EXPECT_EQ(at(*i32, 2), 16777217.0);  // not a float
  Tensor* i64 = *graph.leaf("i64", DType::i64, {1, 1, 1, 1});
  leaves.set<int64_t>(i64, {int64_t{1} << 40});
  EXPECT_EQ(at(*i64, 0), std::ldexp(1, 40));
  Tensor* i8 = *graph.leaf("i8", DType::i8, {2, 1, 1, 1});
  leaves.set<int8_t>(i8, {-128, 127});
  EXPECT_EQ(at(*i8, 0), -128);
  Tensor* f64 = *graph.leaf("f64", DType::f64, {1, 1, 1, 1});
  leaves.set<double>(f64, {0.1});
  EXPECT_EQ(at(*f64, 0), 0.1);
  Tensor* bf16 = *graph.leaf("bf16", DType::bf16, {1, 1, 1, 1});
  leaves.set<uint16_t>(bf16, {0xC020});
  EXPECT_EQ(at(*bf16, 0), -2.5);
}

TEST_F(ValuesTest, PartsOfQuantizedRows) {
  Tensor* x = *graph.leaf("x", DType::q4_K, {1024, 3, 2, 1}, Usage::kWeights);
  leaves.randomize(x, 3);
  std::vector<double> whole(1024);
  ASSERT_TRUE(leaves.read_row(*x, 2, 1, 0, 0, whole).ok());
  std::vector<double> part(300);
  ASSERT_TRUE(leaves.read_row(*x, 2, 1, 0, 250, part).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 250));
  Tensor* view =
      *graph.view(x, {512, 2, 1, 1}, {x->nb[0], x->nb[1], x->nb[2], x->nb[3]}, x->nb[2] + x->nb[1] + 2 * 144);
  part.resize(512);
  ASSERT_TRUE(leaves.read_row(*view, 1, 0, 0, 0, part).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 512));
}

TEST_F(ValuesTest, OutOfRangeAndMissingAreErrors) {
  Tensor* x = counting_leaf({6, 5, 4, 3});
  double v = 0;
  EXPECT_FALSE(leaves.read_row(*x, 0, 0, 0, 6, {&v, 1}).ok());
  EXPECT_FALSE(leaves.read_row(*x, 5, 0, 0, 0, {&v, 1}).ok());
  EXPECT_FALSE(leaves.read_row(*x, 0, -1, 0, 0, {&v, 1}).ok());
  leaves.memory[x].resize(100);
  EXPECT_FALSE(leaves.read_row(*x, 0, 0, 0, 0, {&v, 1}).ok());
  leaves.memory.clear();
  EXPECT_FALSE(leaves.read_row(*x, 0, 0, 0, 0, {&v, 1}).ok());
  Region region = Region::whole(*x);
  region.index[1].push_back(5);
  EXPECT_FALSE(evaluate_reference(*x, region, leaves).ok());
}

// Product of strided, permuted and broadcast operands against the definition, element by element.
TEST_F(ValuesTest, ProductBroadcastsByDivision) {
  Tensor* a_wide = *graph.leaf("a", DType::f16, {48, 7, 2, 2}, Usage::kWeights);
  Tensor* b_raw = *graph.leaf("b", DType::f32, {33, 4, 5, 6});
  leaves.randomize(a_wide, 1);
  leaves.randomize(b_raw, 2);
  Tensor* a = *graph.view(a_wide, {33, 7, 2, 2}, a_wide->nb, 2 * 5);  // rows with a gap
  Tensor* b = *graph.permute(b_raw, {0, 2, 1, 3});                    // [33, 5, 4, 6]
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {7, 5, 4, 6}, {a, b});
  Region region;
  region.index = {{{6, 0, 3}, {4, 1}, {0, 1, 2, 3}, {5, 2, 3}}};
  const auto got = evaluate_reference(*y, region, leaves);
  ASSERT_TRUE(got.ok()) << got.error().message;
  size_t n = 0;
  for (const int64_t i3 : region.index[3]) {
    for (const int64_t i2 : region.index[2]) {
      for (const int64_t i1 : region.index[1]) {
        for (const int64_t i0 : region.index[0]) {
          double want = 0;
          for (int64_t c = 0; c < 33; ++c) {
            want += at(*a_wide, c + 5, i0, i2 / 2, i3 / 3) * at(*b_raw, c, i2, i1, i3);
          }
          ASSERT_NEAR((*got)[n++], want, 1e-12);
        }
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(n), region.count());
}

// Large enough for several threads; every row must be where it belongs.
TEST_F(ValuesTest, LargeProductsEqualTheirParts) {
  Tensor* a = *graph.leaf("a", DType::q8_0, {1024, 515, 1, 1}, Usage::kWeights);
  Tensor* b = *graph.leaf("b", DType::f32, {1024, 40, 1, 1});
  leaves.randomize(a, 1);
  leaves.randomize(b, 2);
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {515, 40, 1, 1}, {a, b});
  const auto whole = evaluate_reference(*y, Region::whole(*y), leaves);
  ASSERT_TRUE(whole.ok());
  Region part;
  part.index = {{{0, 257, 258, 514}, {0, 39}, {0}, {0}}};
  const auto some = evaluate_reference(*y, part, leaves);
  ASSERT_TRUE(some.ok());
  size_t n = 0;
  for (const int64_t j : part.index[1]) {
    for (const int64_t i : part.index[0]) {
      EXPECT_EQ((*some)[n++], (*whole)[static_cast<size_t>(515 * j + i)]);
    }
  }
}

TEST_F(ValuesTest, EmptyProducts) {
  Tensor* a = *graph.leaf("a", DType::f32, {8, 4, 1, 1}, Usage::kWeights);
  Tensor* b = *graph.leaf("b", DType::f32, {8, 0, 1, 1});
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {4, 0, 1, 1}, {a, b});
  const auto got = evaluate_reference(*y, Region::whole(*y), leaves);
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(got->empty());
}

// Results between ops are rounded to their type: 2049 is not a half, 2048 is.
TEST_F(ValuesTest, IntermediateResultsHaveTheirType) {
  Tensor* one = *graph.leaf("one", DType::f32, {1, 1, 1, 1});
  Tensor* x = *graph.leaf("x", DType::f32, {1, 1, 1, 1});
  leaves.set<float>(one, {1});
  leaves.set<float>(x, {2049});
  Tensor* half = *graph.node("mul_mat", {}, DType::f16, {1, 1, 1, 1}, {one, x});
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {1, 1, 1, 1}, {one, half});
  const auto got = evaluate_reference(*y, Region::whole(*y), leaves);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)[0], 2048);
  const auto own = evaluate_reference(*half, Region::whole(*half), leaves);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ((*own)[0], 2049);
}

TEST_F(ValuesTest, MagnitudeIsTheSizeBeforeCancellation) {
  Tensor* a = *graph.leaf("a", DType::f32, {2, 1, 1, 1});
  Tensor* b = *graph.leaf("b", DType::f32, {2, 1, 1, 1});
  leaves.set<float>(a, {3, 4});
  leaves.set<float>(b, {1, -0.75F});
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {1, 1, 1, 1}, {a, b});
  const auto value = evaluate_reference(*y, Region::whole(*y), leaves);
  const auto size = reference_magnitude(*y, Region::whole(*y), leaves);
  ASSERT_TRUE(value.ok() && size.ok());
  EXPECT_EQ((*value)[0], 0);
  EXPECT_NEAR(*size, std::sqrt(18), 1e-12);
}

TEST_F(ValuesTest, UnknownOpsAreErrors) {
  Tensor* x = counting_leaf({4, 1, 1, 1});
  Tensor* y = *graph.node("no_such_op", {}, DType::f32, {4, 1, 1, 1}, {x});
  const auto got = evaluate_reference(*y, Region::whole(*y), leaves);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("no_such_op"), std::string::npos);
}

}  // namespace
}  // namespace cudabk::test
