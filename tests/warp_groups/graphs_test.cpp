// Graphs around products by warp groups through the backend, on an emulated device that poses as sm_90a: addends in the
// epilogue, views of activations and weights, batches and broadcasts, parts of k, ends of rows and columns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/layouts.h"
#include "formats/frag_shape.h"
#include "graph/init.h"
#include "ops/binary.h"
#include "ops/mul_mat.h"
#include "shuffled_device.h"
#include "verify/verify.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kGraphSeed = 20261204;

enum class Addend { kNone, kBias, kResidual };
// kPadded: 4 floats between columns, which stay on multiples of 16 bytes; kOdd: 1 float; kSwapped: dims 1 and 2 change
// places in memory; kReversed: dims 1 and 3; kLate: columns begin 8 bytes behind a multiple of 16.
enum class Columns { kDense, kPadded, kOdd, kSwapped, kReversed, kLate };

struct Shapes {
  int64_t m, n, k;
  int64_t b2 = 1, b3 = 1;  // slices of the weights
  int64_t r2 = 1, r3 = 1;  // slices of the activations for each of them
};

struct GraphCase {
  const char* name;
  Config config;
  Shapes shapes;
  Addend addend = Addend::kNone;
  Columns columns = Columns::kDense;
  int64_t rows_before = 0;  // of the tensor that the weights are a view of
  float stddev = 1;         // of the activations
};

struct TypedCase {
  DType type;
  GraphCase graph;

  std::string family() const { return type == DType::f16 || type == DType::bf16 ? "mmsf_group" : "frag_tile"; }
};

std::string name_of(const testing::TestParamInfo<TypedCase>& info) {
  return fmt::format("{}_{}", dtype_name(info.param.type), info.param.graph.name);
}
void PrintTo(const TypedCase& c, std::ostream* out) { *out << dtype_name(c.type) << " " << c.graph.name; }

class WarpGroupGraphs : public testing::TestWithParam<TypedCase> {
 protected:
  void SetUp() override {
    device_ = open_shuffled_device(kGraphSeed, "host@sm_90a");
    RecordProperty("seed", std::to_string(kGraphSeed));
  }

  Tensor* weights(DType type, const GraphCase& c) {
    const Shapes& s = c.shapes;
    Tensor* w = graph_.leaf("weights", type, {s.k, c.rows_before + s.m, s.b2, s.b3}, Usage::kWeights).value();
    return c.rows_before == 0
               ? w
               : graph_.view(w, {s.k, s.m, s.b2, s.b3}, w->nb, c.rows_before * static_cast<int64_t>(w->nb[1])).value();
  }
  Tensor* columns(const GraphCase& c) {
    const Shapes& s = c.shapes;
    const Shape ne{s.k, s.n, s.b2 * s.r2, s.b3 * s.r3};
    const auto leaf = [&](Shape memory) { return graph_.leaf("columns", DType::f32, memory).value(); };
    switch (c.columns) {
      case Columns::kPadded:
      case Columns::kOdd: {
        Tensor* wide = leaf({ne[0] + (c.columns == Columns::kPadded ? 4 : 1), ne[1], ne[2], ne[3]});
        return graph_.view(wide, ne, wide->nb, 0).value();
      }
      case Columns::kLate: {
        Tensor* wide = leaf({ne[0] + 4, ne[1], ne[2], ne[3]});
        return graph_.view(wide, ne, wide->nb, 8).value();
      }
      case Columns::kSwapped:
        return graph_.permute(leaf({ne[0], ne[2], ne[1], ne[3]}), {0, 2, 1, 3}).value();
      case Columns::kReversed:
        return graph_.permute(leaf({ne[0], ne[3], ne[2], ne[1]}), {0, 3, 2, 1}).value();
      case Columns::kDense:
        break;
    }
    return leaf(ne);
  }
  // The product and its addend; one output.
  void build(DType type, const GraphCase& c) {
    Tensor* product = mul_mat(graph_, weights(type, c), columns(c)).value();
    if (c.addend != Addend::kNone) {
      const Shape ne = c.addend == Addend::kBias ? Shape{product->ne[0], 1, 1, 1} : product->ne;
      add(graph_, product, graph_.leaf("addend", DType::f32, ne).value()).value();
    }
  }
  PlanOptions plan_options(const std::string& family, const Config& config) const {
    PlanOptions options;
    options.profile = &profile_;
    options.forced_family = family;
    options.forced_config = config;
    return options;
  }
  void fill(GraphBuffers& buffers, float stddev) {
    for (const auto& t : graph_.tensors()) {
      if (t->op != kOpNone || t->view_src != nullptr) {
        continue;
      }
      std::vector<std::byte> bytes(static_cast<size_t>(byte_size(*t)));
      const double spread = t->usage == Usage::kWeights ? 1 / std::sqrt(static_cast<double>(t->ne[0]))
                            : t->name == "columns"      ? stddev
                                                        : 1;
      ASSERT_TRUE(fill_random({.type = t->type, .stddev = spread, .seed = tensor_seed(kGraphSeed, t->id)}, bytes).ok());
      ASSERT_TRUE(buffers.upload(*t, bytes).ok());
    }
  }
  // Runs the graph and compares with the reference; results are poisoned and guarded.
  void verify(const PlanOptions& options, float stddev) {
    BackendOptions backend_options;
    backend_options.plan = options;
    const auto backend = Backend::create(*device_, backend_options).value();
    GraphBuffers buffers = GraphBuffers::allocate(*device_, graph_, {.poison = true}).value();
    fill(buffers, stddev);
    const auto report = verify_graph(graph_, buffers, *backend, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->outputs.size(), 1U);
    EXPECT_TRUE(report->pass()) << report->outputs[0].text();
  }

  std::unique_ptr<Device> device_;
  Profile profile_;
  Graph graph_;
};

bool launches_of(const Plan& plan, std::string_view header) {
  const std::vector<KernelKey> kernels = plan.kernels();
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelKey& key) { return key.header == header; });
}

TEST_P(WarpGroupGraphs, MatchTheReference) {
  const auto& [type, c] = GetParam();
  const std::string family = GetParam().family();
  build(type, c);
  const PlanOptions options = plan_options(family, c.config);
  choose_layouts(graph_, device_->info(), options);
  const auto plan = make_plan(graph_, device_->info(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(launches_of(*plan, family == "frag_tile" ? "frag/tile.h" : "mmsf/group.h"));
  EXPECT_EQ(c.addend != Addend::kNone, !plan->fusions.empty() && plan->fusions[0].count == 2);
  verify(options, c.stddev);
}

const std::vector<GraphCase> kFragCases = {
    {"bias", {{"cols", 32}, {"split", 1}}, {33, 17, 512}, Addend::kBias},
    {"bias_parts", {{"cols", 64}, {"split", 4}}, {40, 33, 768}, Addend::kBias},
    {"residual", {{"cols", 32}, {"split", 1}}, {21, 40, 256}, Addend::kResidual},
    {"residual_parts", {{"cols", 32}, {"split", 2}}, {64, 31, 768}, Addend::kResidual},
    {"residual_batch", {{"cols", 32}, {"split", 8}}, {19, 20, 512, 2, 2}, Addend::kResidual},
    {"bias_batch", {{"cols", 32}, {"split", 1}}, {36, 18, 256, 2, 1, 2, 3}, Addend::kBias},
    {"padded", {{"cols", 64}}, {17, 65, 256}, Addend::kNone, Columns::kPadded},
    {"odd", {{"cols", 32}}, {48, 25, 768}, Addend::kNone, Columns::kOdd},
    {"late", {{"cols", 32}}, {48, 25, 512}, Addend::kBias, Columns::kLate},
    {"swapped", {{"cols", 32}, {"split", 2}}, {20, 19, 512, 2, 2, 2, 1}, Addend::kNone, Columns::kSwapped},
    {"reversed", {{"cols", 64}, {"split", 1}}, {20, 35, 256, 1, 2, 2, 2}, Addend::kResidual, Columns::kReversed},
    {"rows", {{"cols", 32}, {"groups", 4}}, {20, 17, 512}, Addend::kNone, Columns::kDense, 32},
    {"rows_batch", {{"cols", 32}, {"split", 1}}, {24, 17, 256, 2, 1, 2, 1}, Addend::kBias, Columns::kDense, 16},
    {"large", {{"cols", 32}}, {64, 29, 768}, Addend::kNone, Columns::kDense, 0, 1e30F},
    {"small", {{"cols", 32}}, {64, 29, 768}, Addend::kNone, Columns::kDense, 0, 1e-30F},
};

const std::vector<GraphCase> kGroupCases = {
    {"bias", {{"cols", 16}, {"groups", 1}, {"split", 1}}, {33, 13, 264}, Addend::kBias},
    {"bias_parts", {{"split", 4}}, {45, 33, 768}, Addend::kBias},
    {"residual", {{"cols", 32}, {"groups", 1}, {"depth", 256}, {"split", 1}}, {63, 31, 520}, Addend::kResidual},
    {"residual_parts", {{"cols", 16}, {"groups", 1}, {"split", 2}}, {64, 16, 768}, Addend::kResidual},
    {"residual_batch", {{"split", 8}}, {19, 20, 512, 2, 2}, Addend::kResidual},
    {"bias_batch", {{"cols", 16}, {"groups", 1}, {"split", 1}}, {36, 9, 72, 2, 1, 2, 3}, Addend::kBias},
    {"one_row", {{"split", 1}}, {1, 17, 256}, Addend::kResidual},
    {"two_blocks", {{"cols", 16}, {"groups", 1}, {"split", 1}}, {65, 5, 128}},
    {"short_k", {{"split", 4}}, {7, 64, 8}},
    {"last_piece", {{"cols", 32}, {"groups", 1}, {"depth", 256}, {"split", 2}}, {30, 32, 760}},
    {"padded", {{"split", 2}}, {17, 61, 256}, Addend::kNone, Columns::kPadded},
    {"odd", {{"cols", 32}, {"groups", 1}, {"depth", 256}}, {48, 25, 328}, Addend::kNone, Columns::kOdd},
    {"late", {{"cols", 16}, {"groups", 1}, {"split", 1}}, {48, 15, 512}, Addend::kBias, Columns::kLate},
    {"swapped",
     {{"cols", 32}, {"groups", 1}, {"depth", 256}, {"split", 2}},
     {20, 19, 512, 2, 2, 2, 1},
     Addend::kNone,
     Columns::kSwapped},
    {"reversed", {{"split", 1}}, {20, 35, 256, 1, 2, 2, 2}, Addend::kResidual, Columns::kReversed},
    {"rows", {{"split", 2}}, {21, 17, 392}, Addend::kBias, Columns::kDense, 5},
    {"large", {{"split", 2}}, {64, 29, 768}, Addend::kNone, Columns::kDense, 0, 1e30F},
    {"small", {{"split", 2}}, {64, 29, 768}, Addend::kNone, Columns::kDense, 0, 1e-30F},
};

std::vector<TypedCase> typed_cases() {
  std::vector<TypedCase> cases;
  for (const DType type : {DType::q4_0, DType::q6_K, DType::iq2_xs}) {
    for (const GraphCase& c : kFragCases) {
      cases.push_back({type, c});
    }
  }
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const GraphCase& c : kGroupCases) {
      cases.push_back({type, c});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, WarpGroupGraphs, testing::ValuesIn(typed_cases()), name_of);

// ---- what the families leave to others ----

class WarpGroupRefusals : public WarpGroupGraphs {};

// Weights that a copy of 16 bytes cannot begin with: the family is chosen, and another kernel multiplies.
TEST_P(WarpGroupRefusals, MisalignedRowsGoElsewhere) {
  const DType type = GetParam().type;
  Tensor* memory = graph_.leaf("weights", type, {64 * 40 + 4, 1, 1, 1}, Usage::kWeights).value();
  Tensor* w = graph_.view(memory, {64, 40, 1, 1}, {2, 128, 128 * 40, 128 * 40}, 8).value();
  Tensor* product = mul_mat(graph_, w, graph_.leaf("columns", DType::f32, {64, 33, 1, 1}).value()).value();
  add(graph_, product, graph_.leaf("addend", DType::f32, {40, 1, 1, 1}).value()).value();
  const PlanOptions options = plan_options("mmsf_group", {});
  const auto plan = make_plan(graph_, device_->info(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(launches_of(*plan, "tile/tile.h"));
  EXPECT_FALSE(launches_of(*plan, "mmsf/group.h"));
  verify(options, 1);
}

TEST_P(WarpGroupRefusals, SayWhy) {
  const DType type = GetParam().type;
  const auto refusal = [&](Tensor* w, Precision precision) -> std::string {
    Tensor* x = graph_.leaf("columns", DType::f32, {w->ne[0], 33, 1, 1}).value();
    const Tensor* product = mul_mat(graph_, w, x, {precision}).value();
    for (const Family& family : mul_mat_op().families()) {
      if (family.name == "mmsf_group") {
        return family.applicable(mul_mat_op().problem(*product), complete_config(family), device_->info()).reason;
      }
    }
    return "no such family";
  };
  Tensor* dense = graph_.leaf("weights", type, {64, 40, 1, 1}, Usage::kWeights).value();
  EXPECT_EQ(refusal(dense, Precision::kDefault), "");
  EXPECT_NE(refusal(dense, Precision::kF32).find("f32 precision was requested"), std::string::npos);
  Tensor* gapped = graph_.view(dense, {56, 40, 1, 1}, dense->nb, 0).value();
  EXPECT_NE(refusal(gapped, Precision::kDefault).find("do not follow each other"), std::string::npos);
  Tensor* odd = graph_.leaf("weights", type, {68, 40, 1, 1}, Usage::kWeights).value();
  EXPECT_NE(refusal(odd, Precision::kDefault).find("multiples of 16 bytes"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Every, WarpGroupRefusals,
                         testing::Values(TypedCase{DType::f16, {"none", {}, {}}},
                                         TypedCase{DType::bf16, {"none", {}, {}}}),
                         name_of);

}  // namespace
}  // namespace cudabk::test
