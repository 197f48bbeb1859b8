// Graphs known by a caller's key: run without being built again, once for every set of addresses, bounded, forgotten
// after an error, and never fused where tensors share memory in a way that a fusion would break.
#include "backend/graph_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backend/emulated_backend.h"
#include "ops/binary.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kSeed = 20261130;
constexpr int64_t kWidth = 256, kColumns = 3;

// y = weights * x + bias, with as many rows as x has: y may lie where x is.
Graph make_graph(int64_t columns = kColumns) {
  Graph graph;
  Tensor* weights = *graph.leaf("weights", DType::q4_K, {kWidth, kWidth, 1, 1}, Usage::kWeights);
  Tensor* bias = *graph.leaf("bias", DType::f32, {kWidth, 1, 1, 1}, Usage::kWeights);
  Tensor* x = *graph.leaf("x", DType::f32, {kWidth, columns, 1, 1});
  EXPECT_TRUE(add(graph, *mul_mat(graph, weights, x), bias).ok());
  return graph;
}
constexpr int kX = 2, kProduct = 3, kY = 4;

// Every root tensor has its own address.
KeyedGraph keyed(Graph graph) {
  KeyedGraph k{std::move(graph), {}};
  for (const auto& t : k.graph.tensors()) {
    k.roots.emplace_back(t->id, t->id);
  }
  return k;
}

class Cache : public EmulatedBackend {
 protected:
  Cache() : EmulatedBackend(3), cache(std::make_unique<GraphCache>(*backend)) {}

  std::vector<float> values(DevicePtr at, int64_t count) {
    std::vector<float> v(static_cast<size_t>(count));
    EXPECT_TRUE(backend->synchronize().ok());
    EXPECT_TRUE(device->download(v.data(), at, count * 4).ok());
    return v;
  }

  // What the graph gives in memory of its own.
  std::vector<float> expected(uint64_t seed) {
    const Graph graph = make_graph();
    GraphBuffers buffers = filled(graph, seed);
    EXPECT_TRUE(backend->compute(graph, buffers.bindings()).ok());
    return values(buffers.bindings().tensors[kY], kWidth * kColumns);
  }

  bool run(const GraphKey& key, const std::vector<DevicePtr>& addresses) {
    const Result<bool> found = cache->run(key, addresses);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() && *found;
  }

  static double worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = std::abs(double{a[i]} - double{b[i]});
      worst = d <= worst ? worst : d;  // NaN counts
    }
    return worst;
  }

  std::unique_ptr<GraphCache> cache;
};

TEST_P(Cache, AKnownKeyRunsWithoutPlanningAndReadsNewValues) {
  const Graph shape = make_graph();
  GraphBuffers buffers = filled(shape, kSeed), other = filled(shape, kSeed + 1);
  const auto addresses = buffers.bindings().tensors;
  EXPECT_FALSE(run({1, 2}, addresses));
  ASSERT_TRUE(cache->add({1, 2}, keyed(make_graph()), addresses).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(run({1, 2}, addresses));
  }
  EXPECT_FALSE(run({1, 3}, addresses));
  EXPECT_FALSE(run({2, 2}, addresses));
  EXPECT_EQ(values(addresses[kY], kWidth * kColumns), expected(kSeed));
  // The same graph in other memory.
  EXPECT_TRUE(run({1, 2}, other.bindings().tensors));
  EXPECT_EQ(values(other.bindings().tensors[kY], kWidth * kColumns), expected(kSeed + 1));
  EXPECT_EQ(cache->counters().hits, 3);
  EXPECT_EQ(cache->counters().added, 1);
  EXPECT_EQ(cache->counters().moved, 1);
}

// The layers of a model: one plan, and what is executable for each layer stays so.
TEST_P(Cache, OneGraphInTurnsAtSeveralPlacesIsBoundOnceForEach) {
  std::vector<GraphBuffers> layers;
  const Graph shape = make_graph();
  for (uint64_t i = 0; i < 3; ++i) {
    layers.push_back(filled(shape, kSeed + i));
  }
  ASSERT_TRUE(cache->add({1, 2}, keyed(make_graph()), layers[0].bindings().tensors).ok());
  EXPECT_EQ(backend->counters().plans_made, 1);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 3; ++i) {
      const auto& addresses = layers[i].bindings().tensors;
      ASSERT_TRUE(device->fill(addresses[kY], 0xff, kWidth * kColumns * 4).ok());
      EXPECT_TRUE(run({1, 2}, addresses));
      EXPECT_EQ(values(addresses[kY], kWidth * kColumns), expected(kSeed + i)) << round << " " << i;
    }
  }
  EXPECT_EQ(cache->counters().added, 1);
  EXPECT_EQ(cache->counters().moved, 2);
  EXPECT_EQ(cache->counters().hits, 7);
  EXPECT_EQ(cache->size(), 3U);
}

TEST_P(Cache, AnExecutableGraphIsMadeAtTheSecondRunAndOnlyOnce) {
  const Graph shape = make_graph();
  GraphBuffers buffers = filled(shape, kSeed);
  const auto execution = cache->add({1, 1}, keyed(make_graph()), buffers.bindings().tensors);
  ASSERT_TRUE(execution.ok()) << execution.error().message;
  EXPECT_EQ((*execution)->mode(), LaunchMode::kEager);
  EXPECT_EQ(backend->counters().graphs_built, 0);
  EXPECT_TRUE(run({1, 1}, buffers.bindings().tensors));
  EXPECT_TRUE(run({1, 1}, buffers.bindings().tensors));
  EXPECT_EQ(backend->counters().graphs_built, GetParam() == LaunchMode::kGraph ? 1 : 0);
}

TEST_P(Cache, TheLeastRecentlyUsedGoes) {
  std::vector<GraphBuffers> buffers;
  for (int64_t n = 1; n <= 4; ++n) {
    const Graph shape = make_graph(n);
    buffers.push_back(filled(shape, kSeed));
    if (n == 4) {
      EXPECT_TRUE(run({1, 0}, buffers[0].bindings().tensors));  // 2 is now the older one
    }
    ASSERT_TRUE(
        cache->add({static_cast<uint64_t>(n), 0}, keyed(make_graph(n)), buffers.back().bindings().tensors).ok());
  }
  EXPECT_EQ(cache->size(), 3U);
  EXPECT_EQ(cache->counters().evicted, 1);
  EXPECT_TRUE(run({1, 0}, buffers[0].bindings().tensors));
  EXPECT_TRUE(run({3, 0}, buffers[2].bindings().tensors));
  EXPECT_FALSE(run({2, 0}, buffers[1].bindings().tensors));
}

// Known fault: a fused result was written over operands that were still to be read. A caller that reuses memory gives
// the sum the place of x, since the graph's last reader of x is the product.
TEST_P(Cache, AResultInTheMemoryOfAnOperandIsNotFused) {
  const Graph shape = make_graph();
  GraphBuffers apart = filled(shape, kSeed), shared = filled(shape, kSeed);
  ASSERT_TRUE(cache->add({1, 1}, keyed(make_graph()), apart.bindings().tensors).ok());
  EXPECT_EQ(cache->counters().unfused, 0);
  auto addresses = shared.bindings().tensors;
  addresses[kY] = addresses[kX];
  const std::vector<float> wanted = expected(kSeed);
  EXPECT_FALSE(run({1, 1}, addresses));  // the fused plan is none for such memory
  const auto execution = cache->add({1, 1}, keyed(make_graph()), addresses);
  ASSERT_TRUE(execution.ok()) << execution.error().message;
  EXPECT_EQ(cache->counters().unfused, 1);
  EXPECT_LT(worst_difference(values(addresses[kY], kWidth * kColumns), wanted), 1e-4);

  GraphBuffers again = filled(shape, kSeed);
  addresses = again.bindings().tensors;
  addresses[kY] = addresses[kX];
  EXPECT_TRUE(run({1, 1}, addresses));  // now there is a plan for it
  EXPECT_EQ(cache->counters().unfused, 1);
  EXPECT_LT(worst_difference(values(addresses[kY], kWidth * kColumns), wanted), 1e-4);
  EXPECT_TRUE(run({1, 1}, apart.bindings().tensors));
  EXPECT_EQ(values(apart.bindings().tensors[kY], kWidth * kColumns), wanted);
}

// Where the sum takes the product's place, nothing is read from there in the fused form.
TEST_P(Cache, AResultInTheMemoryOfTheFusedIntermediateIsFused) {
  const Graph shape = make_graph();
  GraphBuffers buffers = filled(shape, kSeed);
  auto addresses = buffers.bindings().tensors;
  addresses[kY] = addresses[kProduct];
  const auto execution = cache->add({1, 1}, keyed(make_graph()), addresses);
  ASSERT_TRUE(execution.ok()) << execution.error().message;
  EXPECT_EQ(cache->counters().unfused, 0);
  EXPECT_EQ(values(addresses[kY], kWidth * kColumns), expected(kSeed));
}

TEST_P(Cache, AGraphThatCannotBePlannedIsNotKept) {
  Graph graph;
  Tensor* a = *graph.leaf("a", DType::f32, {4, 1, 1, 1});
  ASSERT_TRUE(graph.node("no such op", {}, DType::f32, {4, 1, 1, 1}, {a}).ok());
  const std::vector<DevicePtr> addresses(2, nullptr);
  const auto added = cache->add({1, 1}, keyed(std::move(graph)), addresses);
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().kind, ErrorKind::kUnsupported);
  EXPECT_FALSE(run({1, 1}, addresses));
  EXPECT_EQ(cache->size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, Cache, testing::Values(LaunchMode::kEager, LaunchMode::kGraph),
                         [](const auto& info) { return info.param == LaunchMode::kGraph ? "graph" : "eager"; });

}  // namespace
}  // namespace cudabk::test
