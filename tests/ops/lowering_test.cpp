// What lowering chooses: paths of copies, vector widths, grids of large tensors.
#include <gtest/gtest.h>

#include "binary/args.h"
#include "copy/args.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/copy_plan.h"
#include "ops/get_rows.h"
#include "ops/op_harness.h"
#include "ops/rms_norm.h"
#include "ops/set_rows.h"
#include "rms_norm/args.h"
#include "row_moves/args.h"

namespace cudabk::test {
namespace {

class Lowering : public ::testing::Test {
 protected:
  Lowering() {
    info.sm_count = 132;
    info.name = "test device";
  }
  Tensor* leaf(DType type, Shape ne) { return graph.leaf("t", type, ne).value(); }
  KernelWork lower(const Tensor& t) {
    PlainLowerContext context(info);
    auto launches = op_of(t)->lower(t, context);
    EXPECT_TRUE(launches.ok()) << launches.error().message;
    EXPECT_EQ(launches->size(), 1u);
    return std::get<KernelWork>(launches->front().work);
  }
  template <class Args>
  static Args args_of(const KernelWork& work) {
    Args args;
    EXPECT_EQ(work.args.size(), sizeof(Args));
    std::memcpy(&args, work.args.data(), sizeof(Args));
    return args;
  }
  Graph graph;
  DeviceInfo info;
};

TEST_F(Lowering, DenseTensorsBecomeOneRow) {
  const KernelWork work = lower(**add(graph, leaf(DType::f32, {10, 5, 4, 3}), leaf(DType::f32, {10, 5, 4, 3})));
  const auto args = args_of<BinaryArgs>(work);
  EXPECT_EQ(args.grid.cols, 600);
  EXPECT_EQ(args.grid.rows, 1);
  EXPECT_NE(work.key.entry.find("kSame, 256, 4, 1"), std::string::npos) << work.key.entry;
}

TEST_F(Lowering, BroadcastDimsStayApart) {
  const KernelWork work = lower(**add(graph, leaf(DType::f32, {64, 5, 4, 3}), leaf(DType::f32, {64, 1, 1, 3})));
  const auto args = args_of<BinaryArgs>(work);
  EXPECT_EQ(args.grid.cols, 64);
  EXPECT_EQ(args.grid.ne1, 20);  // dims 1 and 2 of b are one value each
  EXPECT_EQ(args.b_ne1, 1);
  EXPECT_EQ(args.b_ne2, 3);
}

TEST_F(Lowering, OffsetsDecideTheVectorWidth) {
  Tensor* a = leaf(DType::f32, {68, 4, 1, 1});
  const auto entry_of_view = [&](Shape ne, int64_t offset) {
    return lower(**rms_norm(graph, *graph.view(a, ne, a->nb, offset), 0)).key.entry;
  };
  EXPECT_EQ(entry_of_view({64, 3, 1, 1}, 0), "rms_norm<32, 4, 4, 4, false>");
  EXPECT_EQ(entry_of_view({64, 3, 1, 1}, 16), "rms_norm<32, 4, 4, 4, false>");
  EXPECT_EQ(entry_of_view({64, 3, 1, 1}, 4), "rms_norm<32, 4, 1, 4, false>");
  EXPECT_EQ(entry_of_view({63, 3, 1, 1}, 0), "rms_norm<32, 4, 1, 4, false>");
}

TEST_F(Lowering, LargeExtentsFoldIntoTheGrid) {
  for (const Shape ne : {Shape{64, 1, 65536, 1}, Shape{64, 1, 1, 65536}, Shape{512, 4194305, 1, 1}}) {
    const KernelWork work = lower(**rms_norm(graph, leaf(DType::f32, ne), 0));
    EXPECT_EQ(work.grid.y, 1u);
    EXPECT_EQ(work.grid.z, 1u);
    EXPECT_GE(int64_t{work.grid.x} * 4, ne[1] * ne[2] * ne[3]);
  }
  // Just over 2^31 elements: every count is 64 bits wide and the blocks cover all of them.
  const KernelWork sum =
      lower(**add(graph, leaf(DType::f16, {512, 4194305, 1, 1}), leaf(DType::f16, {512, 4194305, 1, 1})));
  const auto args = args_of<BinaryArgs>(sum);
  EXPECT_EQ(args.grid.cols, int64_t{512} * 4194305);
  EXPECT_GE(int64_t{sum.grid.x} * 256 * 8 * 4, int64_t{512} * 4194305);
  const KernelWork copy = lower(**cast(graph, leaf(DType::f32, {512, 4194305, 1, 1}), DType::f16));
  EXPECT_EQ(args_of<CopyRowsArgs>(copy).grid.cols, int64_t{512} * 4194305);
}

TEST_F(Lowering, StridesBeyond32BitsSurvive) {
  Tensor* big = leaf(DType::f32, {16, 1 << 30, 4, 1});
  Tensor* view = *graph.view(big, {16, 2, 3, 1}, big->nb, 0);
  const auto args = args_of<RmsNormArgs>(lower(**rms_norm(graph, view, 0)));
  EXPECT_EQ(args.x_strides.s2, int64_t{16} << 30);
}

TEST_F(Lowering, RowsByIndexReachBeyond32Bits) {
  Tensor* table = leaf(DType::f32, {8960, 262144, 2, 1});
  const auto args = args_of<RowMovesArgs>(lower(**get_rows(graph, table, leaf(DType::i32, {4, 2, 1, 1}))));
  EXPECT_EQ(args.src_strides.s1, 8960 * 4);
  EXPECT_EQ(args.src_strides.s2, int64_t{8960} * 4 * 262144);
  const KernelWork many =
      lower(**get_rows(graph, leaf(DType::q4_0, {32, 5, 700, 100}), leaf(DType::i32, {4, 700, 100, 1})));
  EXPECT_EQ(args_of<RowMovesArgs>(many).grid.rows, 4 * 700 * 100);
  EXPECT_EQ(many.grid.y, 1U);
}

TEST_F(Lowering, RowMovesTakeTheWidestAccess) {
  const auto entry = [&](DType type, Shape ne, int64_t put) {
    Tensor* table = leaf(type, ne);
    return lower(**set_rows(graph, table, leaf(DType::f32, {ne[0], put, 1, 1}), leaf(DType::i64, {put, 1, 1, 1})))
        .key.entry;
  };
  EXPECT_EQ(entry(DType::f16, {1024, 9, 1, 1}, 3), "move_rows<float, f16, RowMap::kScatter64, 4, 1>");
  EXPECT_EQ(entry(DType::f16, {1023, 9, 1, 1}, 3), "move_rows<float, f16, RowMap::kScatter64, 1, 1>");
  EXPECT_EQ(entry(DType::q8_0, {1024, 9, 1, 1}, 3), "encode_rows<DType::q8_0, RowMap::kScatter64, true, true, 1>");
  EXPECT_EQ(entry(DType::q8_0, {32, 9, 1, 1}, 3), "encode_rows<DType::q8_0, RowMap::kScatter64, true, false, 1>");
  info.sm_count = 1;  // a small device: several packs per thread
  EXPECT_EQ(entry(DType::q4_0, {4096, 90, 1, 1}, 80), "encode_rows<DType::q4_0, RowMap::kScatter64, true, true, 4>");
}

TEST_F(Lowering, TooManyBlocksIsAnErrorWithTheNumber) {
  PlainLowerContext context(info);
  Tensor* y = *rms_norm(graph, leaf(DType::f32, {4096, int64_t{1} << 40, 1, 1}), 0);
  const auto launches = op_of(*y)->lower(*y, context);
  ASSERT_FALSE(launches.ok());
  EXPECT_EQ(launches.error().kind, ErrorKind::kUnsupported);
}

class CopyPaths : public Lowering {
 protected:
  CopyPath path(const Tensor* a, const Tensor* y) { return plan_copy(*a, *y).path; }
};

TEST_F(CopyPaths, NarrowestThatFits) {
  Tensor* a = leaf(DType::f32, {64, 48, 3, 2});
  EXPECT_EQ(path(a, leaf(DType::f32, {96, 192, 1, 1})), CopyPath::kBytes);
  EXPECT_EQ(path(a, leaf(DType::f16, {96, 192, 1, 1})), CopyPath::kRows);
  Tensor* swapped = *graph.permute(a, {0, 2, 1, 3});
  EXPECT_EQ(path(swapped, leaf(DType::f32, swapped->ne)), CopyPath::kRows);
  Tensor* transposed = *graph.transpose(a);
  EXPECT_EQ(path(transposed, leaf(DType::f32, transposed->ne)), CopyPath::kTransposed);
  EXPECT_EQ(path(a, *graph.transpose(leaf(DType::f32, {48, 64, 3, 2}))), CopyPath::kTransposed);
  Tensor* narrow = *graph.transpose(leaf(DType::f32, {64, 2, 1, 1}));
  EXPECT_EQ(path(narrow, leaf(DType::f32, narrow->ne)), CopyPath::kStrided);
}

TEST_F(CopyPaths, ShapesWithoutCommonDivisionAreWalkedApart) {
  Tensor* big = leaf(DType::f32, {12, 12, 1, 1});
  Tensor* a = *graph.view(big, {6, 4, 1, 1}, big->nb, 0);
  Tensor* y = *graph.view(leaf(DType::f32, {12, 12, 1, 1}), {4, 6, 1, 1}, big->nb, 0);
  const CopyPlan plan = plan_copy(*a, *y);
  EXPECT_EQ(plan.path, CopyPath::kStrided);
  EXPECT_TRUE(plan.dims.empty());
}

}  // namespace
}  // namespace cudabk::test
