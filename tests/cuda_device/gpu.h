// The GPU that these tests run on, and helpers to move data to and from it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/device.h"

namespace cudabk {

constexpr uint64_t kSeed = 20260101;

// Opened once per program; an error where there is no GPU.
inline const Result<std::unique_ptr<Device>>& gpu() {
  static const Result<std::unique_ptr<Device>> device = [] {
    DeviceOptions options;
    options.cache_dir = (std::filesystem::temp_directory_path() / "cudabk_test_cuda_device").string();
    return open_cuda_device(0, options);
  }();
  return device;
}

// Skips by name, with the reason, where there is no GPU.
class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu().ok()) {
      GTEST_SKIP() << gpu().error().message;
    }
    device = gpu().value().get();
    RecordProperty("seed", std::to_string(kSeed));
    auto made = device->create_stream();
    ASSERT_TRUE(made.ok()) << made.error().message;
    stream = std::move(made).value();
  }

  // Host data in device memory.
  template <class T>
  Memory to_device(const std::vector<T>& values) {
    auto memory = device->allocate(static_cast<int64_t>(values.size() * sizeof(T)));
    EXPECT_TRUE(memory.ok()) << memory.error().message;
    const Status copied = device->upload(memory->ptr(), values.data(), memory->bytes());
    EXPECT_TRUE(copied.ok()) << copied.error().message;
    return std::move(memory).value();
  }

  template <class T>
  std::vector<T> to_host(const Memory& memory) {
    std::vector<T> values(static_cast<size_t>(memory.bytes()) / sizeof(T));
    const Status copied = device->download(values.data(), memory.ptr(), memory.bytes());
    EXPECT_TRUE(copied.ok()) << copied.error().message;
    return values;
  }

  const Kernel* load(const std::string& header, const std::string& entry, size_t args_bytes) {
    auto kernel = device->kernel({header, entry, static_cast<uint32_t>(args_bytes)});
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? *kernel : nullptr;
  }

  template <class Args>
  static KernelLaunch make_launch(const Kernel* kernel, const Args& args, uint32_t grid, uint32_t block,
                                  uint32_t shared_bytes = 0) {
    KernelLaunch launch{kernel, {grid, 1, 1}, {block, 1, 1}, shared_bytes, false, {}};
    launch.args.resize(sizeof(Args));
    std::memcpy(launch.args.data(), &args, sizeof(Args));
    return launch;
  }

  void run(const Work& work) {
    const Status ran = stream->run(work);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    const Status finished = stream->synchronize();
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }

  Device* device = nullptr;
  std::unique_ptr<Stream> stream;
  std::mt19937_64 random{kSeed};
};

template <class T>
T* as(const Memory& memory) {
  return reinterpret_cast<T*>(memory.ptr());
}

}  // namespace cudabk
