// How long a whole matrix-vector product takes on the emulated device, and what a switch between threads costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "device/device.h"
#include "mmvq/args.h"
#include "platform/host_launch.h"
#include "platform/platform.h"

namespace cudabk {
namespace {

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
constexpr double kSlowdown = 1;
#else
constexpr double kSlowdown = 40;  // without optimization, or with red zones, only hangs are caught
#endif

// Processor time of all threads of this process: unlike the clock on the wall it does not grow with what else runs
// here.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(Speed, MatrixVectorProductOf4096Rows) {
  constexpr int64_t kSize = 4096, kRowBytes = kSize / 256 * block_bytes(DType::q4_K);
  auto opened = open_device("host", {});
  ASSERT_TRUE(opened.ok());
  Device& device = **opened;
  const auto kernel = device.kernel({"mmvq/mmvq.h", "mmvq<DType::q4_K, 1, 4, 2>", sizeof(MmvqArgs)});
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  auto weights = device.allocate(kSize * kRowBytes), codes = device.allocate(kSize),
       scales = device.allocate(kSize / kActivationBlock * static_cast<int64_t>(sizeof(ActivationScale))),
       dst = device.allocate(kSize * 4);
  ASSERT_TRUE(weights.ok() && codes.ok() && scales.ok() && dst.ok());
  for (Memory* memory : {&*weights, &*codes, &*scales}) {
    ASSERT_TRUE(device.fill(memory->ptr(), 0x11, memory->bytes()).ok());
  }
  MmvqArgs args{};
  args.weights = reinterpret_cast<const uint8_t*>(weights->ptr());
  args.codes = reinterpret_cast<const int8_t*>(codes->ptr());
  args.scales = reinterpret_cast<const ActivationScale*>(scales->ptr());
  args.dst = reinterpret_cast<float*>(dst->ptr());
  args.batch = {1, 1, 1, 1};
  args.row_stride = kRowBytes;
  args.m = args.k = kSize;
  args.n = 1;
  KernelLaunch launch{*kernel, {kSize / 2, 1, 1}, {128, 1, 1}, vector_shared_bytes(4, 2, 1)};
  launch.args.resize(sizeof(args));
  std::memcpy(launch.args.data(), &args, sizeof(args));
  auto stream = device.create_stream();
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = processor_seconds();
    const auto status = (*stream)->run(launch);
    ASSERT_TRUE(status.ok()) << status.error().message;
    best = std::min(best, processor_seconds() - start);
  }
  std::printf("q4_K 4096 x 4096 matrix-vector product: %.1f ms of processor time\n", best * 1e3);
  EXPECT_LT(best, 2 * 0.3 * kSlowdown);  // 0.3 s on two cores
}

struct RoundsArgs {
  int rounds;
  float* sum;
};
void shuffles(RoundsArgs a) {
  float value = static_cast<float>(lane());
  for (int i = 0; i < a.rounds; ++i) {
    value += shuffle_xor(value, 1) * 0.25f;
  }
  if (thread_x() == 0) {
    *a.sum = value;
  }
}

TEST(Speed, SwitchBetweenThreads) {
  float sum = 0;
  host::HostLaunch shape;
  shape.threads = 128;
  constexpr int kRounds = 2000;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = processor_seconds();
    ASSERT_FALSE(host::run_kernel(shuffles, RoundsArgs{kRounds, &sum}, shape).has_value());
    best = std::min(best, processor_seconds() - start);
  }
  const double ns = best * 1e9 / (kRounds * 128.0);
  std::printf("one lane's part of a shuffle: %.1f ns\n", ns);
  EXPECT_LT(ns, 100 * kSlowdown);
}

}  // namespace
}  // namespace cudabk
