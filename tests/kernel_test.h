// Tests that launch kernels by themselves, without ops and backend, on the emulated device with threads in random
// order.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "shuffled_device.h"

namespace cudabk::test {

template <class Param>
class KernelTest : public testing::TestWithParam<Param> {
 protected:
  // device: "host", or posing as what the kernels need.
  explicit KernelTest(uint64_t seed, std::string_view device = "host")
      : device_(open_shuffled_device(seed, device)), stream_(device_->create_stream().value()) {
    this->RecordProperty("seed", std::to_string(seed));
  }

  template <class T>
  Memory on_device(const std::vector<T>& values) {
    Memory memory = device_->allocate(static_cast<int64_t>(values.size() * sizeof(T))).value();
    EXPECT_TRUE(device_->upload(memory.ptr(), values.data(), memory.bytes()).ok());
    return memory;
  }
  template <class T>
  std::vector<T> on_host(const Memory& memory) {
    std::vector<T> values(static_cast<size_t>(memory.bytes()) / sizeof(T));
    EXPECT_TRUE(device_->download(values.data(), memory.ptr(), memory.bytes()).ok());
    return values;
  }
  // An argument struct's pointer to `memory`.
  template <class T>
  static T* at(const Memory& memory) {
    return reinterpret_cast<T*>(memory.ptr());
  }
  // The sum of `parts` results of the same length, one after the other.
  static std::vector<float> added(std::vector<float> parts, int64_t count) {
    const size_t total = parts.size() / static_cast<size_t>(count);
    for (size_t i = total; i < parts.size(); ++i) {
      parts[i % total] += parts[i];
    }
    parts.resize(total);
    return parts;
  }

  // Launches the variant and waits for it. shared: bytes of a block.
  template <class Args>
  void run(const std::string& header, const std::string& entry, Dim3 grid, int threads, int shared, const Args& args) {
    const auto kernel = device_->kernel({header, entry, sizeof(Args)});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    KernelLaunch launch{*kernel,
                        grid,
                        {static_cast<uint32_t>(threads), 1, 1},
                        static_cast<uint32_t>(shared),
                        false,
                        std::vector<std::byte>(sizeof(Args))};
    std::memcpy(launch.args.data(), &args, sizeof(Args));
    const Status ran = stream_->run(launch);
    ASSERT_TRUE(ran.ok()) << entry << ": " << ran.error().message;
    ASSERT_TRUE(stream_->synchronize().ok());
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace cudabk::test
