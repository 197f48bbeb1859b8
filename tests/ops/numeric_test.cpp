// Every test case of every op of this folder's families on the emulated device, in three orders of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cases.h"
#include "ops/op_harness.h"
#include "row_moves/args.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kNumericSeed = 20261;
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
    auto harness = OpHarness::open(order, kNumericSeed);
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

// Faults in the arguments of row moves: each must be seen.
TEST(RowMoves, WrongRowsAreCaught) {
  struct Fault {
    const char* op;
    const char* params;
    void (*plant)(RowMovesArgs&);
  };
  const Fault faults[] = {
      {"get_rows", "type=q4_0 cols=64 rows=5 take=4", [](RowMovesArgs& a) { a.index_strides.s1 = 0; }},
      {"get_rows", "type=q4_K cols=256 rows=5 take=4 dim2=3", [](RowMovesArgs& a) { a.index_strides.s2 = 0; }},
      {"get_rows", "type=f16 cols=64 rows=5 take=4 dim2=3", [](RowMovesArgs& a) { a.src_strides.s2 = 0; }},
      {"set_rows", "type=q8_0 cols=64 rows=9 put=4", [](RowMovesArgs& a) { a.index_strides.s1 = 0; }},
      {"set_rows", "type=q8_0 cols=64 rows=9 put=4 dim2=4 repeat2=2", [](RowMovesArgs& a) { a.index_ne1 = 1; }},
      {"set_rows", "type=f16 cols=64 rows=9 put=4 dim3=2", [](RowMovesArgs& a) { a.dst_strides.s3 = 0; }},
      {"set_rows", "type=q4_0 cols=128 rows=9 put=4", [](RowMovesArgs& a) { a.grid.cols -= 32; }},
      {"cpy", "type=f32 type-dst=q5_1 cols=64 rows=6 layout-dst=half", [](RowMovesArgs& a) { a.dst_strides.s1 /= 2; }},
      {"cpy", "type=f32 type-dst=q5_1 cols=96 rows=4 layout=half cols-dst=64 rows-dst=6 layout-dst=half",
       [](RowMovesArgs& a) { a.dst_blocks += 1; }},
  };
  for (const Fault& fault : faults) {
    auto harness = OpHarness::open(DeviceOptions::ThreadOrder::kAscending, kNumericSeed);
    ASSERT_TRUE(harness.ok());
    const OpDef& op = **find_op(fault.op);
    EXPECT_TRUE((*harness)->check_case(op, make_case(fault.params)).ok()) << fault.op << " " << fault.params;
    (*harness)->tamper = [&](KernelWork& work) {
      RowMovesArgs args;
      ASSERT_EQ(work.args.size(), sizeof(args));
      std::memcpy(&args, work.args.data(), sizeof(args));
      fault.plant(args);
      std::memcpy(work.args.data(), &args, sizeof(args));
    };
    const Status status = (*harness)->check_case(op, make_case(fault.params));
    ASSERT_FALSE(status.ok()) << fault.op << " " << fault.params;
    EXPECT_EQ(status.error().kind, ErrorKind::kWrongOutput) << status.error().message;
  }
}

}  // namespace
}  // namespace cudabk::test
