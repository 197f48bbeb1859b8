// What the key of a graph depends on, and what it costs.
#include "graph_scan.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "mini_host.h"

namespace cudabk::plugin_test {
namespace {

using plugin::GraphScan;
using plugin::RootTraits;

// y = rms_norm(x) * gain; z = weights * y, read through a view.
struct Sample {
  Sample() {
    x = tensors.leaf(GGML_TYPE_F32, {64, 3, 1, 1});
    gain = tensors.leaf(GGML_TYPE_F32, {64, 1, 1, 1});
    weights = tensors.leaf(GGML_TYPE_Q8_0, {64, 32, 1, 1});
    norm = tensors.rms_norm(x, 1e-5F);
    product = tensors.mul_mat(weights, tensors.binary(GGML_OP_MUL, norm, gain));
    view = tensors.view(product, {16, 3, 1, 1}, 32);
    sum = tensors.binary(GGML_OP_ADD, view, view);
  }
  Tensors tensors;
  ggml_tensor *x, *gain, *weights, *norm, *product, *view, *sum;
};

GraphKey key_of(Sample& s, RootTraits traits = {}) {
  const HostGraph host(s.tensors);
  GraphScan scan;
  scan.scan(s.tensors.nodes, &host.graph, [&](const ggml_tensor&) { return traits; });
  return scan.key();
}

TEST(GraphScan, EqualGraphsInOtherMemoryHaveTheSameKey) {
  Sample a, b;
  b.x->data = b.tensors.nodes.data();  // any address
  EXPECT_EQ(key_of(a), key_of(b));
  EXPECT_EQ(key_of(a), key_of(a));
}

TEST(GraphScan, EverythingThatAPlanDependsOnChangesTheKey) {
  Sample plain;
  const GraphKey key = key_of(plain);
  const std::vector<std::pair<const char*, std::function<void(Sample&)>>> changes = {
      {"extent", [](Sample& s) { s.x->ne[1] = 4; }},
      {"stride", [](Sample& s) { s.view->nb[1] += 64; }},
      {"type", [](Sample& s) { s.gain->type = GGML_TYPE_F16; }},
      {"parameter", [](Sample& s) { s.norm->op_params[0] ^= 1; }},
      {"last parameter", [](Sample& s) { s.norm->op_params[15] = 1; }},
      {"op", [](Sample& s) { s.sum->op = GGML_OP_MUL; }},
      {"source", [](Sample& s) { s.sum->src[1] = s.product; }},
      {"swapped sources", [](Sample& s) { std::swap(s.product->src[0], s.product->src[1]); }},
      {"view offset", [](Sample& s) { s.view->view_offs += 4; }},
      {"output", [](Sample& s) { s.norm->flags |= GGML_TENSOR_FLAG_OUTPUT; }},
      {"node order", [](Sample& s) { std::swap(s.tensors.nodes[0], s.tensors.nodes[1]); }},
      {"a node less", [](Sample& s) { s.tensors.nodes.pop_back(); }},
#ifdef CUDABK_GGML_HAS_COMPUTE_FLAG
      {"not wanted", [](Sample& s) { s.sum->flags = 0; }},
#endif
  };
  for (const auto& [what, change] : changes) {
    Sample changed;
    change(changed);
    const GraphKey other = key_of(changed);
    EXPECT_TRUE(other.low != key.low && other.high != key.high) << what;
  }
  EXPECT_FALSE(key_of(plain, {.weights = true}) == key);
  EXPECT_FALSE(key_of(plain, {.packed = true}) == key);
  EXPECT_FALSE(key_of(plain, {.foreign = true}) == key);
}

// A part of a graph must write what other parts read.
TEST(GraphScan, ValuesReadElsewhereMustExist) {
  Sample s;
  GraphScan scan;
  const auto none = [](const ggml_tensor&) { return RootTraits{}; };
  const HostGraph whole(s.tensors);
  scan.scan(s.tensors.nodes, &whole.graph, none);
  EXPECT_FALSE(scan.must_exist(*s.norm));
  EXPECT_TRUE(scan.must_exist(*s.product));  // a view reads it
  const HostGraph part(s.tensors, 0, 1);
  scan.scan(std::span(part.graph.nodes, 1), &part.graph, none);
  EXPECT_TRUE(scan.must_exist(*s.norm));  // the product of the other part reads it
  scan.scan(s.tensors.nodes, nullptr, none);
  EXPECT_TRUE(scan.must_exist(*s.norm));  // nothing is known of its readers
  EXPECT_EQ(scan.roots().size(), 7U);
  EXPECT_EQ(scan.addresses().size(), 7U);
}

TEST(GraphScan, CostsLessThanAMicrosecondPerNode) {
  Tensors tensors;
  ggml_tensor* x = tensors.leaf(GGML_TYPE_F32, {4096, 1, 1, 1});
  ggml_tensor* gain = tensors.leaf(GGML_TYPE_F32, {4096, 1, 1, 1});
  for (int i = 0; i < 1000; ++i) {
    ggml_tensor* y = tensors.binary(GGML_OP_MUL, tensors.rms_norm(x, 1e-5F), gain);
    x = tensors.binary(GGML_OP_ADD, tensors.mul_mat(tensors.leaf(GGML_TYPE_Q8_0, {4096, 4096, 1, 1}), y), x);
  }
  const HostGraph host(tensors);
  GraphScan scan;
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    scan.scan(tensors.nodes, &host.graph, [](const ggml_tensor&) { return RootTraits{}; });
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  const double per_node = best / static_cast<double>(tensors.nodes.size());
  RecordProperty("ns_per_node", std::to_string(per_node));
  std::printf("[   cost   ] %.0f ns per node, %zu nodes\n", per_node, tensors.nodes.size());
#ifdef __SANITIZE_ADDRESS__
  EXPECT_LT(per_node, 20000);
#else
  EXPECT_LT(per_node, 1000);
#endif
}

}  // namespace
}  // namespace cudabk::plugin_test
