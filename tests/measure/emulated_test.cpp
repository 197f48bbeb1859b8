// The measuring kernels and the limits on the emulated device: figures mean nothing there, the code path does.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "measure/args.h"
#include "measure/clock.h"
#include "measure/limits.h"
#include "measure/trace.h"

namespace cudabk {
namespace {

std::unique_ptr<Device> open_host() {
  auto device = open_device("host", {});
  EXPECT_TRUE(device.ok()) << device.error().message;
  return std::move(device).value();
}

TEST(Emulated, SpinCountsCyclesAndTime) {
  const auto device = open_host();
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  const auto spin = SpinKernel::create(*device);
  ASSERT_TRUE(spin.ok()) << spin.error().message;
  const auto clock = (*spin)->clock_mhz(**stream, 100e3);
  ASSERT_TRUE(clock.ok()) << clock.error().message;
  EXPECT_NEAR(*clock, 1000, 100);  // a cycle is a nanosecond there
  EXPECT_FALSE(clock_reader(*device, **spin, **stream));
}

TEST(Emulated, CopyKernelCopiesEveryByteAndNoOther) {
  const auto device = open_host();
  const auto stream = device->create_stream();
  constexpr int64_t kTile = 16LL * 256 * 4;
  constexpr int64_t kTiles = 5;
  const auto memory = device->allocate(2 * kTiles * kTile + 256);
  ASSERT_TRUE(memory.ok());
  std::vector<uint32_t> words(2 * kTiles * kTile / 4 + 64, 0xa5a5a5a5U);
  for (size_t i = 0; i < kTiles * kTile / 4; ++i) {
    words[i] = static_cast<uint32_t>(i * 2654435761U);
  }
  const auto bytes = static_cast<int64_t>(words.size() * 4);
  ASSERT_TRUE(device->upload(memory->ptr(), words.data(), bytes).ok());
  const auto kernel = device->kernel({"measure/copy_bandwidth.h", "copy_bandwidth<256, 4>", sizeof(CopyBandwidthArgs)});
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  for (const uint32_t grid : {1U, 2U, 5U, 9U}) {  // fewer, as many and more blocks than tiles
    CopyBandwidthArgs args{reinterpret_cast<const uint32_t*>(memory->ptr()),
                           reinterpret_cast<uint32_t*>(memory->ptr() + kTiles * kTile), kTiles};
    KernelLaunch launch;
    launch.kernel = *kernel;
    launch.grid = {grid, 1, 1};
    launch.block = {256, 1, 1};
    launch.args.resize(sizeof(args));
    std::memcpy(launch.args.data(), &args, sizeof(args));
    ASSERT_TRUE(device->fill(memory->ptr() + kTiles * kTile, 0xa5, kTiles * kTile).ok());
    ASSERT_TRUE((*stream)->run(launch).ok());
    std::vector<uint32_t> got(words.size());
    ASSERT_TRUE(device->download(got.data(), memory->ptr(), bytes).ok());
    EXPECT_EQ(0, std::memcmp(got.data() + kTiles * kTile / 4, words.data(), kTiles * kTile)) << grid;
    EXPECT_EQ(got.back(), 0xa5a5a5a5U) << grid;
  }
}

TEST(Emulated, LimitsAreMeasuredLabelledAndCached) {
  const auto device = open_host();
  const auto limits = machine_limits(*device);
  ASSERT_TRUE(limits.ok()) << limits.error().message;
  EXPECT_TRUE(limits->emulated);
  EXPECT_GT(limits->read_gbps, 0);
  EXPECT_GT(limits->copy_gbps, 0);
  EXPECT_GT(limits->gemm_tflops, 0);
  EXPECT_TRUE(limits->gemm_reason.empty());
  EXPECT_GT(limits->sm_clock_mhz, 0);
  EXPECT_FALSE(limits->read_kernel.empty());
  const auto again = machine_limits(*device);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(limits->read_gbps, again->read_gbps);  // the same measurement, not another
  const std::atomic<bool> interrupted = true;
  const auto stopped = measure_limits(*device, &interrupted);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kInterrupted);
}

TEST(Emulated, TracingIsRefusedWithAReason) {
  const auto device = open_host();
  const auto tracer = KernelTracer::create(*device);
  ASSERT_FALSE(tracer.ok());
  EXPECT_EQ(tracer.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(timer_notice(tracer.error()).find("kernel times from events: the emulated device"), std::string::npos);
}

}  // namespace
}  // namespace cudabk
