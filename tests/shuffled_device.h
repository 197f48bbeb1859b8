// The emulated device as tests of kernels open it.
#pragma once

#include <memory>
#include <string_view>

#include "device/device.h"

namespace cudabk::test {

// Threads run in a random order of this seed.
inline std::unique_ptr<Device> open_shuffled_device(uint64_t seed, std::string_view name = "host") {
  DeviceOptions options;
  options.thread_order = DeviceOptions::ThreadOrder::kShuffled;
  options.shuffle_threads_seed = seed;
  return open_device(name, options).value();
}

}  // namespace cudabk::test
