// Packed weight tensors through the backend on the emulated device: every read gives the raw values.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/backend.h"
#include "backend/buffers.h"
#include "backend/layouts.h"
#include "formats/frag_shape.h"
#include "graph/init.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/frag_weights.h"
#include "ops/get_rows.h"
#include "ops/mul_mat.h"
#include "shuffled_device.h"
#include "verify/verify.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kSeed = 20261130;

class PackedTensors : public testing::Test {
 protected:
  void SetUp() override {
    device = open_shuffled_device(kSeed);
    for (const DTypeTraits& row : kDTypes) {
      if (frag_shape(row.type).exists()) {
        profile.layouts[row.name] = "frag";
      }
    }
    plan.profile = &profile;
    BackendOptions backend_options;
    backend_options.plan = plan;
    backend = Backend::create(*device, backend_options).value();
    RecordProperty("seed", std::to_string(kSeed));
  }
  // Memory for the graph, laid out as the profile says, with random values.
  GraphBuffers filled() {
    choose_layouts(graph, device->info(), plan);
    GraphBuffers buffers = GraphBuffers::allocate(*device, graph, {.poison = true}).value();
    for (const auto& t : graph.tensors()) {
      if (t->op == kOpNone) {
        const Status uploaded = buffers.upload(*t, values_of(*t));
        EXPECT_TRUE(uploaded.ok()) << uploaded.error().message;
      }
    }
    return buffers;
  }
  static std::vector<std::byte> values_of(const Tensor& t, uint64_t seed = kSeed) {
    std::vector<std::byte> bytes(static_cast<size_t>(byte_size(t)));
    if (t.type == DType::i32) {
      return bytes;
    }
    EXPECT_TRUE(fill_random({.type = t.type, .stddev = 0.1, .seed = tensor_seed(seed, t.id)}, bytes).ok());
    return bytes;
  }
  std::vector<std::byte> read(GraphBuffers& buffers, const Tensor& t) {
    std::vector<std::byte> bytes(static_cast<size_t>(byte_size(t)));
    const Status status = buffers.download(t, bytes);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return bytes;
  }
  void expect_right(GraphBuffers& buffers) {
    const auto report = verify_graph(graph, buffers, *backend, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->pass()) << report->status().error().message << " seed " << kSeed;
  }
  Tensor* leaf(DType type, Shape ne, Usage usage = Usage::kWeights) {
    return *graph.leaf("t" + std::to_string(graph.tensors().size()), type, ne, usage);
  }
  Tensor* packed_leaf(DType type, Shape ne, Usage usage = Usage::kWeights) {
    Tensor* t = leaf(type, ne, usage);
    t->layout_wish = LayoutWish::kFrag;
    return t;
  }
  int launches_named(std::string_view label) {
    const Result<Plan> made = make_plan(graph, device->info(), plan);
    EXPECT_TRUE(made.ok()) << made.error().message;
    int count = 0;
    for (const PlannedLaunch& l : made->launches) {
      count += l.launch.label.starts_with(label) ? 1 : 0;
    }
    return count;
  }

  Profile profile;
  PlanOptions plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Backend> backend;
  Graph graph;
};

TEST_F(PackedTensors, ReadBackAndPartialWritesAreThoseOfRawMemory) {
  std::vector<Tensor*> all;
  for (const auto& [name, layout] : profile.layouts) {
    const DType type = parse_dtype(name).value();
    all.push_back(packed_leaf(type, {block_elements(type) == 32 ? 1056 : 768, 19, 2, 1}));
  }
  GraphBuffers buffers = filled();
  for (const Tensor* t : all) {
    ASSERT_EQ(t->layout, WeightLayout::kFrag) << describe(*t);
    EXPECT_EQ(allocation_bytes(*t), frag_tensor_bytes(*t));
    std::vector<std::byte> want = values_of(*t);
    ASSERT_EQ(read(buffers, *t), want) << describe(*t);
    std::mt19937_64 random(kSeed);
    for (const int64_t offset : {int64_t{0}, int64_t{5}, t->nb[1] + 3, byte_size(*t) - 11}) {  // inside of blocks too
      std::vector<std::byte> patch(11);
      for (std::byte& b : patch) {
        b = static_cast<std::byte>(random());
      }
      ASSERT_TRUE(buffers.upload(*t, patch, offset).ok());
      std::copy(patch.begin(), patch.end(), want.begin() + offset);
    }
    ASSERT_EQ(read(buffers, *t), want) << describe(*t) << " after partial writes, seed " << kSeed;
    EXPECT_FALSE(buffers.upload(*t, std::vector<std::byte>(8), byte_size(*t) - 7).ok());
  }
  EXPECT_EQ(buffers.repacked().tensors, static_cast<int>(all.size()) * 5);
  EXPECT_GT(buffers.repacked().ns, 0);
  EXPECT_TRUE(buffers.check_guards().ok());
}

// Memory that a caller filled raw, and that is packed when a product first reads it.
TEST_F(PackedTensors, PackingInPlaceAndBackKeepsEveryBit) {
  Repacker repacker(*device);
  for (const DType type : {DType::q4_K, DType::q8_0, DType::iq2_s}) {
    Tensor* t = packed_leaf(type, {768, 19, 2, 1});
    t->layout = WeightLayout::kFrag;
    Memory memory = device->allocate(frag_tensor_bytes(*t)).value();
    const std::vector<std::byte> want = values_of(*t);
    std::vector<std::byte> got(want.size());
    ASSERT_TRUE(device->upload(memory.ptr(), want.data(), byte_size(*t)).ok());
    ASSERT_TRUE(repacker.pack_in_place(*t, memory.ptr()).ok());
    ASSERT_TRUE(device->download(got.data(), memory.ptr(), byte_size(*t)).ok());
    EXPECT_NE(got, want) << describe(*t);
    std::vector<std::byte> part(100);
    ASSERT_TRUE(repacker.download(*t, memory.ptr(), part, 333).ok());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), want.begin() + 333)) << describe(*t);
    ASSERT_TRUE(repacker.unpack_in_place(*t, memory.ptr()).ok());
    ASSERT_TRUE(device->download(got.data(), memory.ptr(), byte_size(*t)).ok());
    EXPECT_EQ(got, want) << describe(*t);
  }
}

TEST_F(PackedTensors, CopiesOfThemAndOfAnyViewReadRawValues) {
  Tensor* w = packed_leaf(DType::q4_K, {512, 40, 2, 1});
  ASSERT_TRUE(cont(graph, w).ok());
  for (const int64_t offset : {w->nb[1] * 16, w->nb[1] * 3, w->nb[2] + 144}) {
    Tensor* view = *graph.view(w, {256, 1, 1, 1}, w->nb, offset);
    (*cont(graph, view))->is_output = true;
  }
  GraphBuffers buffers = filled();
  EXPECT_EQ(launches_named("unpack"), 1);  // shared by all of them
  expect_right(buffers);
}

TEST_F(PackedTensors, RowsOfThemAreRawRows) {
  Tensor* table = packed_leaf(DType::iq2_s, {512, 40, 1, 1});
  Tensor* rows = leaf(DType::i32, {7, 1, 1, 1}, Usage::kCompute);
  rows->index_limit = 40;
  ASSERT_TRUE(get_rows(graph, table, rows).ok());
  GraphBuffers buffers = filled();
  const std::vector<int32_t> wanted = {39, 0, 16, 15, 17, 32, 31};
  ASSERT_TRUE(buffers.upload(*rows, std::as_bytes(std::span(wanted))).ok());
  EXPECT_EQ(launches_named("unpack"), 1);
  expect_right(buffers);
}

TEST_F(PackedTensors, ProductsShareActivationsAndUnpackOnlyWhatIsNotAWholeStrip) {
  Tensor* w = leaf(DType::q6_K, {512, 80, 2, 1});
  Tensor* v = leaf(DType::q3_K, {512, 33, 1, 1});
  Tensor* x = leaf(DType::f32, {512, 2, 2, 1}, Usage::kCompute);
  const auto product = [&](Tensor* weights) { (*mul_mat(graph, weights, x))->is_output = true; };
  product(w);
  product(*graph.view(w, {512, 17, 2, 1}, w->nb, 48 * w->nb[1]));
  product(*graph.view(w, {512, 33, 1, 1}, w->nb, w->nb[2]));
  product(v);
  GraphBuffers buffers = filled();
  EXPECT_EQ(launches_named("unpack"), 0);
  EXPECT_EQ(launches_named("frag_vector"), 4);
  EXPECT_EQ(launches_named("pack_units"), 2);  // the zero points of q6_K and q3_K differ
  expect_right(buffers);
  product(*graph.view(w, {512, 17, 2, 1}, w->nb, 47 * w->nb[1]));
  EXPECT_EQ(launches_named("unpack"), 1);
  GraphBuffers again = filled();
  expect_right(again);
}

// Told to pack for itself, a product does so if it is the only one that reads them.
TEST_F(PackedTensors, ActivationsOfSeveralProductsArePackedOnce) {
  plan.forced_family = "frag_vector";
  plan.forced_config = {{"pack", 0}};
  Tensor* x = leaf(DType::f32, {512, 1, 1, 1}, Usage::kCompute);
  for (const int64_t rows : {48, 33, 16}) {
    (*mul_mat(graph, leaf(DType::q4_K, {512, rows, 1, 1}), x))->is_output = true;
    GraphBuffers buffers = filled();
    EXPECT_EQ(launches_named("pack_units"), rows == 48 ? 0 : 1);
    expect_right(buffers);
  }
}

TEST_F(PackedTensors, AddendsAreFused) {
  Tensor* w = leaf(DType::q4_0, {288, 50, 1, 1});
  for (const int64_t n : {1, 4, 8, 9}) {
    Tensor* x = leaf(DType::f32, {288, n, 1, 1}, Usage::kCompute);
    Tensor* bias = leaf(DType::f32, {50, 1, 1, 1});
    (*add(graph, *mul_mat(graph, w, x), bias))->is_output = true;
  }
  GraphBuffers buffers = filled();
  EXPECT_EQ(launches_named("frag"), 4);
  EXPECT_EQ(make_plan(graph, device->info(), plan)->launches.size(), 8U);
  expect_right(buffers);
}

TEST_F(PackedTensors, StayRawWhereTheyMust) {
  const auto layout_of = [&](const Tensor* t) {
    choose_layouts(graph, device->info(), plan);
    return t->layout;
  };
  EXPECT_EQ(layout_of(packed_leaf(DType::q4_K, {256, 16, 1, 1})), WeightLayout::kFrag);
  EXPECT_EQ(layout_of(packed_leaf(DType::q4_K, {256, 15, 1, 1})), WeightLayout::kRaw);                   // no strip
  EXPECT_EQ(layout_of(packed_leaf(DType::q4_K, {256, 16, 1, 1}, Usage::kCompute)), WeightLayout::kRaw);  // may change
  EXPECT_EQ(layout_of(packed_leaf(DType::f16, {256, 16, 1, 1})), WeightLayout::kRaw);  // no such layout
  EXPECT_EQ(layout_of(leaf(DType::q4_K, {256, 16, 1, 1})), WeightLayout::kRaw);        // no product reads it
  Tensor* wish = leaf(DType::q4_K, {256, 16, 1, 1});
  wish->layout_wish = LayoutWish::kRaw;
  EXPECT_EQ(layout_of(wish), WeightLayout::kRaw);
  Tensor* written = packed_leaf(DType::q4_K, {256, 16, 1, 1});
  ASSERT_TRUE(cpy(graph, leaf(DType::q4_K, {256, 16, 1, 1}), written).ok());
  EXPECT_EQ(layout_of(written), WeightLayout::kRaw);
  DeviceInfo old = device->info();
  old.cc = 75;
  EXPECT_FALSE(frag_can_hold(*wish, old));
}

TEST_F(PackedTensors, TheLayoutIsPartOfTheFingerprint) {
  Tensor* w = leaf(DType::q4_K, {256, 16, 1, 1});
  ASSERT_TRUE(mul_mat(graph, w, leaf(DType::f32, {256, 1, 1, 1}, Usage::kCompute)).ok());
  const uint64_t raw = fingerprint(graph);
  choose_layouts(graph, device->info(), plan);
  EXPECT_NE(fingerprint(graph), raw);
}

TEST_F(PackedTensors, AForcedFamilyGetsTheLayoutItNeeds) {
  Tensor* w = leaf(DType::q4_K, {256, 16, 1, 1});
  ASSERT_TRUE(mul_mat(graph, w, leaf(DType::f32, {256, 1, 1, 1}, Usage::kCompute)).ok());
  plan.forced_family = "mmvq";
  choose_layouts(graph, device->info(), plan);
  EXPECT_EQ(w->layout, WeightLayout::kRaw);
  plan.forced_family = "frag_wide";
  choose_layouts(graph, device->info(), plan);
  EXPECT_EQ(w->layout, WeightLayout::kFrag);
  w->layout_wish = LayoutWish::kRaw;  // a wish is not overruled
  choose_layouts(graph, device->info(), plan);
  EXPECT_EQ(w->layout, WeightLayout::kRaw);
}

}  // namespace
}  // namespace cudabk::test
