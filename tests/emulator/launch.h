// Launching test kernels directly on the emulated GPU.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "platform/host_launch.h"
#include "platform/platform.h"

namespace cudabk {

struct Shape {
  uint32_t threads = 32;
  uint32_t shared_bytes = 0;
  uint32_t blocks = 1;
  host::Order order = host::Order::kAscending;
  uint64_t seed = 1;
};

// The error of the launch; empty when there was none.
template <class Args>
std::string launch(void (*kernel)(Args), const Args& args, const Shape& shape) {
  host::HostLaunch call;
  call.name = "test_kernel";
  call.grid[0] = shape.blocks;
  call.threads = shape.threads;
  call.shared_bytes = shape.shared_bytes;
  call.order = shape.order;
  call.seed = shape.seed;
  return host::run_kernel(kernel, args, call).value_or("");
}

// Ascending, descending, and shuffled with a few seeds.
inline std::vector<Shape> all_orders(Shape shape) {
  std::vector<Shape> shapes;
  for (const host::Order order : {host::Order::kAscending, host::Order::kDescending}) {
    shape.order = order;
    shapes.push_back(shape);
  }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    shape.order = host::Order::kShuffled;
    shape.seed = seed;
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace cudabk
