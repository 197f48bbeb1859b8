// verify_graph on the emulated device: right graphs pass, changed results are caught and named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "formats/slices.h"
#include "graph/init.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/glu.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"
#include "verify/verify.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kSeed = 20240607;

// The tensor, or a failure that says why there is none.
Tensor* made(Result<Tensor*> result) {
  if (!result.ok()) {
    throw std::runtime_error(result.error().message);
  }
  return *result;
}

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_device("host", {});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    device = std::move(opened).value();
    BackendOptions options;
    options.plan.profile = &profile;
    auto created = Backend::create(*device, options);
    ASSERT_TRUE(created.ok()) << created.error().message;
    backend = std::move(created).value();
  }

  // Allocates and fills the leaves of `graph`.
  void fill() {
    auto allocated = GraphBuffers::allocate(*device, graph, {.poison = true});
    ASSERT_TRUE(allocated.ok()) << allocated.error().message;
    buffers.emplace(std::move(allocated).value());
    for (const auto& t : graph.tensors()) {
      if (t->op != kOpNone) {
        continue;
      }
      std::vector<std::byte> bytes(static_cast<size_t>(byte_size(*t)));
      const double stddev = t->usage == Usage::kWeights ? 1 / std::sqrt(static_cast<double>(t->ne[0])) : 1;
      ASSERT_TRUE(fill_random({.type = t->type, .stddev = stddev, .seed = tensor_seed(kSeed, t->id)}, bytes).ok());
      ASSERT_TRUE(buffers->upload(*t, bytes).ok());
    }
  }
  VerifyReport verify(const VerifyOptions& options = {}) {
    auto report = verify_graph(graph, *buffers, *backend, options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? std::move(report).value() : VerifyReport{};
  }
  void expect_pass(const VerifyReport& report) const {
    EXPECT_FALSE(report.outputs.empty());
    for (const OutputCheck& o : report.outputs) {
      EXPECT_TRUE(o.comparison.pass()) << o.text() << " seed " << kSeed;
    }
  }

  Profile profile;
  std::unique_ptr<Device> device;
  std::unique_ptr<Backend> backend;
  Graph graph;
  std::optional<GraphBuffers> buffers;
};

TEST_F(DeviceTest, ProductsOfEveryWeightTypeOfTheBackend) {
  std::vector<DType> types = {DType::f32, DType::f16, DType::bf16};
  for (const DTypeTraits& row : kDTypes) {
    if (has_device_format(row.type)) {
      types.push_back(row.type);
    }
  }
  for (const DType type : types) {
    for (const int64_t n : {1, 5}) {
      Tensor* w = *graph.leaf("w", type, {512, 33, 1, 1}, Usage::kWeights);
      Tensor* x = *graph.leaf("x", DType::f32, {512, n, 1, 1});
      auto y = mul_mat(graph, w, x);
      ASSERT_TRUE(y.ok()) << y.error().message;
      (*y)->is_output = true;
    }
  }
  fill();
  const VerifyReport report = verify();
  expect_pass(report);
  EXPECT_EQ(report.outputs.size(), 46U);
  EXPECT_GT(report.worst_nmse(), 0);
}

TEST_F(DeviceTest, AGatedLayerIsComputedFromItsLeaves) {
  Tensor* x = *graph.leaf("x", DType::f32, {256, 3, 1, 1});
  Tensor* gain = *graph.leaf("gain", DType::f32, {256, 1, 1, 1}, Usage::kWeights);
  Tensor* gate = *graph.leaf("gate", DType::q4_K, {256, 512, 1, 1}, Usage::kWeights);
  Tensor* up = *graph.leaf("up", DType::q4_K, {256, 512, 1, 1}, Usage::kWeights);
  Tensor* down = *graph.leaf("down", DType::q6_K, {512, 256, 1, 1}, Usage::kWeights);
  Tensor* norm = made(mul(graph, made(rms_norm(graph, x, 1e-5F)), gain));
  Tensor* hidden = made(swiglu_split(graph, made(mul_mat(graph, gate, norm)), made(mul_mat(graph, up, norm))));
  Tensor* y = made(add(graph, made(mul_mat(graph, down, hidden)), x));
  fill();
  const VerifyReport report = verify();
  expect_pass(report);
  ASSERT_EQ(report.outputs.size(), 1U);
  EXPECT_EQ(report.outputs[0].comparison.count, element_count(*y));
}

TEST_F(DeviceTest, CopiesIntoPartsOfALeaf) {
  Tensor* x = *graph.leaf("x", DType::f32, {64, 5, 1, 1});
  Tensor* cache = *graph.leaf("cache", DType::f16, {64, 20, 1, 1});
  Tensor* slot = *graph.view(cache, {64, 5, 1, 1}, cache->nb, 7 * cache->nb[1]);
  Tensor* y = *cpy(graph, x, slot);
  y->is_output = true;
  fill();
  expect_pass(verify());
}

TEST_F(DeviceTest, OpsThatOverwriteTheirInput) {
  Tensor* x = *graph.leaf("x", DType::f32, {64, 5, 1, 1});
  Tensor* y = *graph.leaf("y", DType::f32, {64, 5, 1, 1});
  made(add_inplace(graph, x, y))->is_output = true;
  fill();
  expect_pass(verify());
  expect_pass(verify());  // from the new contents
}

TEST_F(DeviceTest, ChangedResultsAreCaught) {
  Tensor* w = *graph.leaf("w", DType::q8_0, {256, 64, 1, 1}, Usage::kWeights);
  Tensor* x = *graph.leaf("x", DType::f32, {256, 16, 1, 1});
  Tensor* y = *mul_mat(graph, w, x);
  fill();
  expect_pass(verify());
  std::vector<float> result(64 * 16);
  const auto bytes = std::as_writable_bytes(std::span(result));
  ASSERT_TRUE(buffers->download(*y, bytes).ok());
  const auto right = result;
  const auto caught = [&]() -> std::string {
    EXPECT_TRUE(buffers->upload(*y, bytes).ok());
    const auto report = check_outputs(graph, *buffers, {});
    EXPECT_TRUE(report.ok());
    return report->pass() ? "" : report->status().error().message;
  };
  EXPECT_EQ(caught(), "");
  result[64 * 3 + 9] += 3;
  EXPECT_NE(caught().find("[9,3,0,0]"), std::string::npos);
  result = right;
  std::swap_ranges(result.begin(), result.begin() + 64, result.begin() + 64);
  EXPECT_NE(caught(), "");
  result = right;
  result.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(caught().find("[63,15,0,0]"), std::string::npos);
}

}  // namespace
}  // namespace cudabk::test
