// rms_norm times a gain in one launch; and that the harness of this folder notices faults.
#include <gtest/gtest.h>

#include "binary/args.h"
#include "copy/args.h"
#include "ops/binary.h"
#include "ops/cases.h"
#include "ops/op_harness.h"
#include "ops/rms_norm.h"
#include "rms_norm/args.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kSeed = 77;
using Order = DeviceOptions::ThreadOrder;

struct GainCase {
  Shape x, gain;
  const char* layout;
};

class Gain : public ::testing::TestWithParam<GainCase> {};

TEST_P(Gain, MatchesTheUnfusedReference) {
  const GainCase& c = GetParam();
  for (const Order order : {Order::kAscending, Order::kDescending, Order::kShuffled}) {
    if (order != Order::kAscending && c.x[3] > 1000) {
      continue;  // many blocks, the same code
    }
    auto harness = OpHarness::open(order, kSeed);
    ASSERT_TRUE(harness.ok()) << harness.error().message;
    Graph graph;
    Tensor* x = *make_operand(graph, "x", DType::f32, c.x, c.layout);
    Tensor* gain = *make_operand(graph, "gain", DType::f32, c.gain, c.layout);
    Tensor* norm = *rms_norm(graph, x, 1e-5f);
    Tensor* product = *mul(graph, norm, gain);
    ASSERT_TRUE(supports_rms_norm_gain(*x, *gain, *product));
    const Status status = (*harness)->check_fused(graph, *product, [&](LowerContext& context) {
      return lower_rms_norm(*x, gain, *product, rms_norm_eps(*norm), context);
    });
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(RmsNorm, Gain,
                         ::testing::Values(GainCase{{64, 5, 4, 3}, {64, 1, 1, 1}, "dense"},
                                           GainCase{{64, 6, 4, 3}, {64, 3, 2, 1}, "dense"},
                                           GainCase{{64, 6, 4, 3}, {64, 6, 4, 3}, "half"},
                                           GainCase{{63, 5, 4, 1}, {63, 1, 4, 1}, "offset"},
                                           GainCase{{511, 3, 1, 1}, {511, 1, 1, 1}, "dense"},
                                           GainCase{{1025, 2, 1, 1}, {1025, 1, 1, 1}, "window"},
                                           GainCase{{4096, 1, 1, 1}, {4096, 1, 1, 1}, "dense"},
                                           GainCase{{16896, 2, 1, 1}, {16896, 1, 1, 1}, "dense"},
                                           GainCase{{64, 1, 1, 65537}, {64, 1, 1, 1}, "dense"}));

// A planted fault: the case passes as it is and fails when every launch is changed.
template <class Args, class F>
void expect_caught(const char* op_name, const char* params, F&& change) {
  auto harness = OpHarness::open(Order::kAscending, kSeed);
  ASSERT_TRUE(harness.ok()) << harness.error().message;
  const OpDef& op = **find_op(op_name);
  const Status right = (*harness)->check_case(op, make_case(params));
  ASSERT_TRUE(right.ok()) << right.error().message;
  (*harness)->tamper = [&](KernelWork& work) {
    Args args;
    ASSERT_EQ(work.args.size(), sizeof(Args));
    std::memcpy(&args, work.args.data(), sizeof(Args));
    change(work, args);
    std::memcpy(work.args.data(), &args, sizeof(Args));
  };
  const Status status = (*harness)->check_case(op, make_case(params));
  ASSERT_FALSE(status.ok()) << op_name << " " << params;
  EXPECT_EQ(status.error().kind, ErrorKind::kWrongOutput) << status.error().message;
}

TEST(PlantedFault, OneColumnTooMany) {
  expect_caught<BinaryArgs>("add", "cols=33 rows=3 layout=half inplace=1",
                            [](KernelWork&, BinaryArgs& a) { a.grid.cols += 1; });
}

TEST(PlantedFault, LastColumnMissing) {
  expect_caught<BinaryArgs>("mul", "cols=33 rows=3 layout=half", [](KernelWork&, BinaryArgs& a) { a.grid.cols -= 1; });
}

TEST(PlantedFault, OneRowTooMany) {
  expect_caught<RmsNormArgs>("rms_norm", "cols=64 rows=5", [](KernelWork&, RmsNormArgs& a) { a.rows += 1; });
}

TEST(PlantedFault, LastBlockMissing) {
  expect_caught<RmsNormArgs>("rms_norm", "cols=64 rows=5", [](KernelWork& work, RmsNormArgs&) { work.grid.x -= 1; });
}

TEST(PlantedFault, DenseInsteadOfTheDestinationsStride) {
  expect_caught<CopyTransposedArgs>("cpy", "cols=64 rows=32 layout=permuted-1023 layout-dst=window",
                                    [](KernelWork&, CopyTransposedArgs& a) { a.dst_s1 = a.ne0; });
}

TEST(PlantedFault, BroadcastOfTheWrongRow) {
  expect_caught<BinaryArgs>("add", "cols=32 rows=6 repeat1=2", [](KernelWork&, BinaryArgs& a) { a.b_ne1 = 1; });
}

}  // namespace
}  // namespace cudabk::test
