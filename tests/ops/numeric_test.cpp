// Every test case of every op of this folder's families on the emulated device, in three orders of threads.
#include <gtest/gtest.h>

#include "ops/op_harness.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kSeed = 20261;
constexpr int64_t kManyElements = 200000;  // larger cases run in one order

int64_t elements_of(const OpDef& op, const CaseParams& params) {
  Graph graph;
  const auto built = op.build(graph, params);
  return built.ok() ? element_count(**built) : 0;
}

class Numeric : public ::testing::TestWithParam<const char*> {};

TEST_P(Numeric, AllCasesMatchTheReference) {
  const auto op = find_op(GetParam());
  ASSERT_TRUE(op.ok());
  using Order = DeviceOptions::ThreadOrder;
  for (const Order order : {Order::kAscending, Order::kDescending, Order::kShuffled}) {
    auto harness = OpHarness::open(order, kSeed);
    ASSERT_TRUE(harness.ok()) << harness.error().message;
    if (order != Order::kDescending) {
      (*harness)->lowering_device().sm_count = 1;  // most cases then count as more than the device can hold
    }
    for (const CaseParams& params : (*op)->test_cases()) {
      if (order != Order::kAscending && elements_of(**op, params) > kManyElements) {
        continue;
      }
      const Status status = (*harness)->check_case(**op, params);
      EXPECT_TRUE(status.ok()) << status.error().message;
    }
    EXPECT_GT((*harness)->launches(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Numeric,
                         ::testing::Values("add", "mul", "rms_norm", "swiglu", "cpy", "cont", "get_rows", "set_rows"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cudabk::test
