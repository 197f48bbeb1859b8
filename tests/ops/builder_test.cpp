// Builders and supports: what is refused, and that the message says why. Costs.
#include <gtest/gtest.h>

#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/get_rows.h"
#include "ops/glu.h"
#include "ops/op_def.h"
#include "ops/rms_norm.h"
#include "ops/set_rows.h"

namespace cudabk {
namespace {

class Builders : public ::testing::Test {
 protected:
  Tensor* leaf(const char* name, DType type, Shape ne, Usage usage = Usage::kCompute) {
    return graph.leaf(name, type, ne, usage).value();
  }
  static void expect_error(const Result<Tensor*>& result, std::initializer_list<const char*> parts) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
    for (const char* part : parts) {
      EXPECT_NE(result.error().message.find(part), std::string::npos)
          << "'" << part << "' is missing in: " << result.error().message;
    }
  }
  Graph graph;
  DeviceInfo device;
};

TEST_F(Builders, BinaryRefusesShapesThatDoNotRepeat) {
  Tensor* a = leaf("a", DType::f32, {12, 4, 1, 1});
  expect_error(add(graph, a, leaf("b", DType::f32, {5, 4, 1, 1})), {"add", "[5,4]", "[12,4]"});
  expect_error(mul(graph, a, leaf("c", DType::f32, {12, 4, 2, 1})), {"mul", "[12,4,2]", "[12,4]"});
  EXPECT_TRUE(add(graph, a, leaf("d", DType::f32, {6, 2, 1, 1})).ok());
}

TEST_F(Builders, BinaryRefusesTypes) {
  Tensor* a = leaf("a", DType::bf16, {4, 1, 1, 1});
  expect_error(add(graph, a, leaf("b", DType::f32, {4, 1, 1, 1})), {"add", "bf16", "f32", "valid"});
  expect_error(add_cast(graph, leaf("c", DType::f32, {4, 1, 1, 1}), leaf("d", DType::f32, {4, 1, 1, 1}), DType::f16),
               {"add", "f16"});
}

TEST_F(Builders, BinaryNeedsDenseRows) {
  Tensor* a = leaf("a", DType::f32, {8, 6, 1, 1});
  Tensor* t = *graph.transpose(a);
  Tensor* y = *add(graph, t, leaf("b", DType::f32, {6, 8, 1, 1}));
  const Support s = op_of(*y)->supports(*y, device);
  EXPECT_FALSE(s);
  EXPECT_NE(s.reason.find("f32[6,8]"), std::string::npos) << s.reason;
}

TEST_F(Builders, InplaceResultIsAView) {
  Tensor* a = leaf("a", DType::f32, {8, 6, 1, 1});
  Tensor* y = *add_inplace(graph, a, leaf("b", DType::f32, {8, 1, 1, 1}));
  EXPECT_EQ(y->view_src, a);
  EXPECT_EQ(y->nb, a->nb);
  Tensor* n = *rms_norm_inplace(graph, a, 0.5f);
  EXPECT_EQ(n->view_src, a);
  EXPECT_EQ(rms_norm_eps(*n), 0.5f);
}

TEST_F(Builders, RmsNormRefuses) {
  expect_error(rms_norm(graph, leaf("x", DType::f16, {8, 2, 1, 1}), 1e-6f), {"rms_norm", "f16[8,2]", "f32"});
  expect_error(rms_norm(graph, leaf("y", DType::f32, {8, 2, 1, 1}), -1.0f), {"rms_norm", "eps", "-1"});
}

TEST_F(Builders, GainRulesNameTheReason) {
  const Tensor* x = leaf("x", DType::f32, {8, 6, 2, 1});
  const Tensor* y = leaf("y", DType::f32, {8, 6, 2, 1});
  EXPECT_TRUE(supports_rms_norm_gain(*x, *leaf("g", DType::f32, {8, 1, 1, 1}), *y));
  EXPECT_TRUE(supports_rms_norm_gain(*x, *leaf("g", DType::f32, {8, 3, 2, 1}), *y));
  EXPECT_FALSE(supports_rms_norm_gain(*x, *leaf("g", DType::f32, {1, 1, 1, 1}), *y));
  EXPECT_FALSE(supports_rms_norm_gain(*x, *leaf("g", DType::f16, {8, 1, 1, 1}), *y));
  const Support s = supports_rms_norm_gain(*x, *leaf("g", DType::f32, {8, 4, 1, 1}), *y);
  EXPECT_FALSE(s);
  EXPECT_NE(s.reason.find("f32[8,4]"), std::string::npos) << s.reason;
  EXPECT_FALSE(supports_rms_norm_gain(*x, *leaf("g", DType::f32, {8, 6, 2, 3}), *leaf("z", DType::f32, {8, 6, 2, 3})));
}

TEST_F(Builders, SwigluShapes) {
  Tensor* y = *swiglu(graph, leaf("a", DType::f32, {5, 7, 1, 1}));
  EXPECT_EQ(y->ne, (Shape{2, 7, 1, 1}));
  expect_error(swiglu(graph, leaf("b", DType::bf16, {4, 1, 1, 1})), {"swiglu", "bf16"});
  Tensor* a = leaf("c", DType::f16, {4, 2, 1, 1});
  expect_error(swiglu_split(graph, a, leaf("d", DType::f32, {4, 2, 1, 1})), {"swiglu", "f16[4,2]", "f32[4,2]"});
  expect_error(swiglu_split(graph, a, leaf("e", DType::f16, {4, 3, 1, 1})), {"swiglu", "[4,3]"});
}

TEST_F(Builders, CopyRefuses) {
  Tensor* a = leaf("a", DType::f32, {8, 6, 1, 1});
  expect_error(cpy(graph, a, leaf("b", DType::f32, {8, 5, 1, 1})), {"cpy", "48", "40"});
  expect_error(cpy(graph, a, leaf("c", DType::f64, {8, 6, 1, 1})), {"cpy", "f32[8,6]", "f64[8,6]"});
  expect_error(cast(graph, leaf("d", DType::i32, {8, 1, 1, 1}), DType::f16), {"cpy", "i32", "f16"});
  expect_error(cont(graph, a, {8, 5, 1, 1}), {"cont", "48", "40"});
  Tensor* shaped = *cont(graph, a, {16, 3, 1, 1});
  EXPECT_EQ(shaped->ne, (Shape{16, 3, 1, 1}));
}

TEST_F(Builders, StridedCopiesOfBlockTypesAreRefusedByName) {
  Tensor* q = leaf("q", DType::q4_0, {64, 4, 1, 1});
  Tensor* view = *graph.view(q, {32, 4, 1, 1}, q->nb, 0);
  Tensor* y = *cont(graph, view);
  const Support s = op_of(*y)->supports(*y, device);
  EXPECT_FALSE(s);
  EXPECT_NE(s.reason.find("q4_0"), std::string::npos) << s.reason;
  Tensor* dense = *cont(graph, q);
  EXPECT_TRUE(op_of(*dense)->supports(*dense, device));
}

TEST_F(Builders, StridesOfHalfAnElementAreRefused) {
  Tensor* a = leaf("a", DType::f16, {8, 4, 1, 1});
  Tensor* view = *graph.view(a, {4, 2, 1, 1}, {2, 17, 34, 34}, 0);
  Tensor* y = *cont(graph, view);
  EXPECT_FALSE(op_of(*y)->supports(*y, device));
}

TEST_F(Builders, CostsCountEveryTensorOnce) {
  Tensor* a = leaf("a", DType::f32, {64, 8, 1, 1});
  Tensor* w = leaf("w", DType::f32, {64, 1, 1, 1}, Usage::kWeights);
  Tensor* y = *mul(graph, a, w);
  const Cost cost = op_of(*y)->cost(*y);
  EXPECT_EQ(cost.bytes, 64 * 8 * 4 * 2 + 64 * 4);
  EXPECT_EQ(cost.weight_bytes, 64 * 4);
  EXPECT_EQ(cost.operations, 64 * 8);
  Tensor* square = *mul(graph, a, a);
  EXPECT_EQ(op_of(*square)->cost(*square).bytes, 64 * 8 * 4 * 2);
  Tensor* half = *cast(graph, a, DType::f16);
  EXPECT_EQ(op_of(*half)->cost(*half).bytes, 64 * 8 * 6);
  Tensor* target = leaf("t", DType::f16, {64, 8, 1, 1});
  Tensor* copied = *cpy(graph, a, target);
  EXPECT_EQ(op_of(*copied)->cost(*copied).bytes, 64 * 8 * 6);
}

TEST_F(Builders, GetRowsRefusesWhatDoesNotFit) {
  Tensor* table = leaf("t", DType::q4_0, {64, 5, 3, 2}, Usage::kWeights);
  Tensor* index = leaf("i", DType::i32, {4, 3, 2, 1});
  Tensor* y = *get_rows(graph, table, index);
  EXPECT_EQ(y->ne, (Shape{64, 4, 3, 2}));
  EXPECT_EQ(y->type, DType::f32);
  expect_error(get_rows(graph, table, leaf("a", DType::i32, {4, 2, 2, 1})), {"get_rows", "i32[4,2,2]", "[r,3,2]"});
  expect_error(get_rows(graph, table, leaf("b", DType::i64, {4, 3, 2, 1})), {"get_rows", "i64", "i32"});
  expect_error(get_rows(graph, leaf("c", DType::q8_K, {256, 5, 3, 2}), index), {"get_rows", "q8_K", "valid", "q4_K"});
  EXPECT_EQ((*get_rows(graph, leaf("d", DType::i32, {64, 5, 3, 2}), index))->type, DType::i32);
  Tensor* columns = *graph.transpose(leaf("e", DType::f32, {5, 64, 3, 2}));
  Tensor* bad = *get_rows(graph, columns, index);
  EXPECT_FALSE(op_of(*bad)->supports(*bad, device));
}

TEST_F(Builders, GetRowsCostsTheRowsItTakes) {
  Tensor* y =
      *get_rows(graph, leaf("t", DType::q4_0, {64, 500, 1, 1}, Usage::kWeights), leaf("i", DType::i32, {4, 1, 1, 1}));
  const Cost cost = op_of(*y)->cost(*y);
  EXPECT_EQ(cost.weight_bytes, 4 * 36);
  EXPECT_EQ(cost.bytes, 4 * 36 + 4 * 4 + 4 * 64 * 4);
  Tensor* all =
      *get_rows(graph, leaf("u", DType::q4_0, {64, 5, 1, 1}, Usage::kWeights), leaf("j", DType::i32, {9, 1, 1, 1}));
  EXPECT_EQ(op_of(*all)->cost(*all).weight_bytes, 5 * 36);
}

TEST_F(Builders, SetRowsRefusesWhatDoesNotFit) {
  Tensor* table = leaf("t", DType::q8_0, {64, 9, 6, 4});
  Tensor* rows = leaf("r", DType::f32, {64, 5, 6, 4});
  Tensor* y = *set_rows(graph, table, rows, leaf("i", DType::i64, {5, 3, 2, 1}));
  EXPECT_EQ(y->view_src, table);
  EXPECT_EQ(op_of(*y)->cost(*y).bytes, 5 * 6 * 4 * (64 * 4 + 68) + 5 * 3 * 2 * 8);
  expect_error(set_rows(graph, table, rows, leaf("a", DType::i32, {5, 4, 2, 1})), {"set_rows", "[5,4,2]", "[5,6,4]"});
  expect_error(set_rows(graph, table, rows, leaf("b", DType::i32, {4, 3, 2, 1})), {"set_rows", "[4,3,2]"});
  expect_error(set_rows(graph, table, rows, leaf("c", DType::f32, {5, 3, 2, 1})), {"set_rows", "f32", "i64"});
  expect_error(set_rows(graph, table, leaf("d", DType::f16, {64, 5, 6, 4}), leaf("e", DType::i64, {5, 3, 2, 1})),
               {"set_rows", "f16", "f32"});
  expect_error(set_rows(graph, leaf("f", DType::q4_K, {256, 9, 1, 1}), leaf("g", DType::f32, {256, 5, 1, 1}),
                        leaf("h", DType::i64, {5, 1, 1, 1})),
               {"set_rows", "q4_K", "iq4_nl"});
}

TEST_F(Builders, QuantizingCopyNeedsWholeBlocks) {
  Tensor* a = leaf("a", DType::f32, {48, 4, 1, 1});
  Tensor* y = *cpy(graph, a, leaf("t", DType::q4_0, {96, 2, 1, 1}));
  const Support s = op_of(*y)->supports(*y, device);
  EXPECT_FALSE(s);
  EXPECT_NE(s.reason.find("f32[48,4]"), std::string::npos) << s.reason;
  Tensor* columns = *graph.transpose(leaf("b", DType::f32, {32, 64, 1, 1}));
  Tensor* z = *cpy(graph, columns, leaf("u", DType::q4_0, {64, 32, 1, 1}));
  EXPECT_FALSE(op_of(*z)->supports(*z, device));
  expect_error(cpy(graph, leaf("c", DType::f16, {32, 1, 1, 1}), leaf("v", DType::q4_0, {32, 1, 1, 1})),
               {"f16", "q4_0"});
  expect_error(cpy(graph, leaf("d", DType::iq4_nl, {32, 1, 1, 1}), leaf("w", DType::f32, {32, 1, 1, 1})), {"iq4_nl"});
}

}  // namespace
}  // namespace cudabk
