// A backend on the emulated device, and memory for its graphs. The parameter is how it launches.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/buffers.h"
#include "graph/init.h"

namespace cudabk::test {

class EmulatedBackend : public testing::TestWithParam<LaunchMode> {
 protected:
  explicit EmulatedBackend(int max_cached_graphs) {
    device = open_device("host", {}).value();
    BackendOptions options;
    options.plan.profile = &profile;
    options.mode = GetParam();
    options.max_cached_graphs = max_cached_graphs;
    backend = Backend::create(*device, options).value();
  }

  // Memory of its own with random values in the graph's leaves; the same values for the same seed. Products with
  // quantized weights of k elements a row keep the size of their activations.
  GraphBuffers filled(const Graph& graph, uint64_t seed) {
    GraphBuffers buffers = GraphBuffers::allocate(*device, graph, {.poison = true}).value();
    for (const auto& t : graph.tensors()) {
      if (t->op != kOpNone) {
        continue;
      }
      std::vector<std::byte> bytes(static_cast<size_t>(byte_size(*t)));
      const double stddev = is_quantized(t->type) ? 1 / std::sqrt(static_cast<double>(t->ne[0])) : 1;
      EXPECT_TRUE(fill_random({.type = t->type, .stddev = stddev, .seed = tensor_seed(seed, t->id)}, bytes).ok());
      EXPECT_TRUE(buffers.upload(*t, bytes).ok());
    }
    return buffers;
  }

  Profile profile;
  std::unique_ptr<Device> device;
  std::unique_ptr<Backend> backend;
};

}  // namespace cudabk::test
