// Tests of the tests: each kernel here has one planted fault, which the emulated GPU must bring to light.
#include <algorithm>
#include <memory>
#include <vector>

#include "device/device.h"
#include "emulator/launch.h"

namespace cudabk {
namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct VectorArgs {
  const float* x;
  float* y;
  int count;
};

// Orders in which `kernel` gives an error or a result other than `expected`.
int orders_that_catch(void (*kernel)(VectorArgs), const std::vector<float>& x, const std::vector<float>& expected,
                      const Shape& shape) {
  int caught = 0;
  for (const Shape& one : all_orders(shape)) {
    std::vector<float> y(expected.size(), -1);
    const std::string error = launch(kernel, VectorArgs{x.data(), y.data(), static_cast<int>(x.size())}, one);
    caught += !error.empty() || y != expected;
  }
  return caught;
}

std::vector<float> ramp(int count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i);
  }
  return x;
}

// Writes x reversed within the block. `Broken` leaves the barrier out.
template <bool Broken, int Shift>
void reverse_kernel(VectorArgs a) {
  auto* shared = shared_memory<float>();
  shared[thread_x()] = a.x[thread_x()];
  if (!Broken) {
    block_sync();
  }
  a.y[thread_x()] = shared[(a.count - 1 - thread_x() + Shift) % a.count];
}

TEST(PlantedFault, MissingBarrier) {
  const std::vector<float> x = ramp(128);
  const std::vector<float> reversed(x.rbegin(), x.rend());
  EXPECT_EQ(orders_that_catch(reverse_kernel<false, 0>, x, reversed, {.threads = 128, .shared_bytes = 512}), 0);
  EXPECT_EQ(orders_that_catch(reverse_kernel<true, 0>, x, reversed, {.threads = 128, .shared_bytes = 512}), 6);
}

// Reads only what lower threads wrote: ascending order hides the missing barrier, the others do not.
template <bool Broken>
void previous_kernel(VectorArgs a) {
  auto* shared = shared_memory<float>();
  shared[thread_x()] = a.x[thread_x()];
  if (!Broken) {
    block_sync();
  }
  a.y[thread_x()] = shared[thread_x() == 0 ? 0 : thread_x() - 1];
}

TEST(PlantedFault, MissingBarrierThatOneOrderHides) {
  const std::vector<float> x = ramp(64);
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) {
    expected[i] = static_cast<float>(std::max(i - 1, 0));
  }
  EXPECT_EQ(orders_that_catch(previous_kernel<false>, x, expected, {.threads = 64, .shared_bytes = 256}), 0);
  EXPECT_EQ(orders_that_catch(previous_kernel<true>, x, expected, {.threads = 64, .shared_bytes = 256}), 5);
}

// A second use of the buffer without a barrier between reading it and writing it again.
template <bool Broken>
void reuse_kernel(VectorArgs a) {
  auto* shared = shared_memory<float>();
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    shared[thread_x()] = a.x[thread_x()] + static_cast<float>(round);
    block_sync();
    sum += shared[(thread_x() + 32) % a.count];
    if (!Broken) {
      block_sync();
    }
  }
  a.y[thread_x()] = sum;
}

TEST(PlantedFault, MissingBarrierBeforeReuse) {
  const std::vector<float> x = ramp(64);
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) {
    expected[i] = 2.0f * static_cast<float>((i + 32) % 64) + 1;
  }
  EXPECT_EQ(orders_that_catch(reuse_kernel<false>, x, expected, {.threads = 64, .shared_bytes = 256}), 0);
  EXPECT_GE(orders_that_catch(reuse_kernel<true>, x, expected, {.threads = 64, .shared_bytes = 256}), 5);
}

TEST(PlantedFault, OffByOne) {
  const std::vector<float> x = ramp(128);
  const std::vector<float> reversed(x.rbegin(), x.rend());
  EXPECT_EQ(orders_that_catch(reverse_kernel<false, 1>, x, reversed, {.threads = 128, .shared_bytes = 512}), 6);
}

// Sums a warp's values; with the wrong mask one lane's value is counted twice and another's is lost.
template <int LastMask>
void warp_sum_kernel(VectorArgs a) {
  float sum = a.x[thread_x()];
  for (int mask = 16; mask > 1; mask /= 2) {
    sum += shuffle_xor(sum, mask);
  }
  a.y[thread_x()] = sum + shuffle_xor(sum, LastMask);
}

TEST(PlantedFault, WrongLane) {
  const std::vector<float> x = ramp(32), expected(32, 31 * 16.0f);
  EXPECT_EQ(orders_that_catch(warp_sum_kernel<1>, x, expected, {}), 0);
  EXPECT_EQ(orders_that_catch(warp_sum_kernel<2>, x, expected, {}), 6);
}

// Copies through shared memory in two stages. `InFlight` 1 at the last stage waits for too little.
template <int InFlight, bool Barrier>
void staged_kernel(VectorArgs a) {
  auto* shared = shared_memory<float>();
  for (int stage = 0; stage < 2; ++stage) {
    async_copy_16(shared + stage * 128 + thread_x() * 4, a.x + stage * 128 + thread_x() * 4);
    async_commit();
  }
  async_wait<InFlight>();
  if (Barrier) {
    block_sync();
  }
  for (int i = thread_x(); i < 256; i += 32) {
    a.y[i] = shared[i];
  }
}

TEST(PlantedFault, MissingAsyncWait) {
  const std::vector<float> x = ramp(256);
  EXPECT_EQ(orders_that_catch(staged_kernel<0, true>, x, x, {.shared_bytes = 1024}), 0);
  EXPECT_EQ(orders_that_catch(staged_kernel<1, true>, x, x, {.shared_bytes = 1024}), 6);
  EXPECT_EQ(orders_that_catch(staged_kernel<0, false>, x, x, {.shared_bytes = 1024}), 6);
}

void divergent_barrier_kernel(VectorArgs a) {
  if (thread_x() < a.count) {
    block_sync();
  }
}

TEST(PlantedFault, DivergentBarrierNamesBlockAndThreads) {
  for (const Shape& shape : all_orders({.threads = 64})) {
    const std::string error = launch(divergent_barrier_kernel, VectorArgs{nullptr, nullptr, 33}, shape);
    EXPECT_TRUE(mentions(error, "test_kernel: block (0, 0, 0)")) << error;
    EXPECT_TRUE(mentions(error, "threads 0-32 waiting at block_sync")) << error;
    EXPECT_TRUE(mentions(error, "threads 33-63 exited")) << error;
  }
}

void one_lane_missing_kernel(VectorArgs a) {
  if (block_x() == 2 && thread_x() == 37) {
    return;
  }
  a.y[thread_x()] = shuffle_xor(1.0f, 1);
}

TEST(PlantedFault, LaneThatLeftBeforeAShuffle) {
  std::vector<float> y(64);
  for (const Shape& shape : all_orders({.threads = 64, .blocks = 3})) {
    const std::string error = launch(one_lane_missing_kernel, VectorArgs{nullptr, y.data(), 0}, shape);
    EXPECT_TRUE(mentions(error, "block (2, 0, 0)") && mentions(error, "thread 37 exited") &&
                mentions(error, "threads 32-36 waiting at shuffle_xor"))
        << error;
  }
}

void mixed_collectives_kernel(VectorArgs) {
  if (lane() == 4) {
    warp_sync();
  } else {
    (void)warp_any(true);
  }
}

TEST(PlantedFault, LanesAtDifferentCollectives) {
  for (const Shape& shape : all_orders({})) {
    const std::string error = launch(mixed_collectives_kernel, VectorArgs{}, shape);
    EXPECT_TRUE(mentions(error, "thread 4 waiting at warp_sync") && mentions(error, "waiting at warp_any")) << error;
  }
}

void partial_warp_mma_kernel(VectorArgs a) {
  float d[4] = {};
  mma_f16_1688(d, {0, 0}, 0);
  a.y[thread_x()] = d[0];
}

TEST(PlantedFault, TensorCoreInstructionInAPartialWarp) {
  std::vector<float> y(48);
  const std::string error = launch(partial_warp_mma_kernel, VectorArgs{nullptr, y.data(), 0}, {.threads = 48});
  EXPECT_TRUE(mentions(error, "fewer than 32 threads")) << error;
}

void misaligned_kernel(VectorArgs a) {
  if (thread_x() == 5) {
    const auto* four = reinterpret_cast<const f32x4*>(a.x + 1);
    a.y[0] = load_readonly(four).x;
  }
}

TEST(PlantedFault, MisalignedLoadNamesTheThread) {
  alignas(16) float x[8] = {};
  float y[1];
  const std::string error = launch(misaligned_kernel, VectorArgs{x, y, 0}, {});
  EXPECT_TRUE(mentions(error, "block (0, 0, 0), thread 5: misaligned load")) << error;
}

void stray_copy_kernel(VectorArgs a) {
  async_copy_16(shared_memory<float>() + 4 * thread_x(), a.x);
  async_commit();
}

TEST(PlantedFault, AsyncCopyBeyondSharedMemory) {
  alignas(16) float x[4] = {};
  const std::string error = launch(stray_copy_kernel, VectorArgs{x, nullptr, 0}, {.threads = 8, .shared_bytes = 112});
  EXPECT_TRUE(mentions(error, "thread 7") && mentions(error, "outside shared memory")) << error;
}

TEST(AfterAFault, TheNextLaunchIsSound) {
  const std::vector<float> x = ramp(64);
  const std::vector<float> reversed(x.rbegin(), x.rend());
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(launch(divergent_barrier_kernel, VectorArgs{nullptr, nullptr, 7}, {.threads = 1024, .blocks = 9}), "");
    EXPECT_EQ(orders_that_catch(reverse_kernel<false, 0>, x, reversed, {.threads = 64, .shared_bytes = 256}), 0);
  }
}

void shared_overrun_kernel(VectorArgs a) { shared_memory<float>()[a.count] = 1; }

#ifdef __SANITIZE_ADDRESS__
void add_kernel(VectorArgs a) {
  const int i = block_x() * 32 + thread_x();
  a.y[i] = a.x[i] + 1;  // no check of the tail
}

void async_overrun_kernel(VectorArgs a) {
  async_copy_16(shared_memory<float>(), a.x + a.count);
  async_commit();
  async_wait<0>();
}

class OutOfBoundsDeath : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    device_ = std::move(open_device("host", {})).value();
    x_ = std::move(device_->allocate(40 * 4)).value();
    y_ = std::move(device_->allocate(64 * 4)).value();
  }
  VectorArgs args(int count) const {
    return {reinterpret_cast<const float*>(x_.ptr()), reinterpret_cast<float*>(y_.ptr()), count};
  }
  std::unique_ptr<Device> device_;
  Memory x_, y_;
};

TEST_F(OutOfBoundsDeath, GlobalRead) {
  EXPECT_DEATH((void)launch(add_kernel, args(40), {.blocks = 2}), "AddressSanitizer");
}
TEST_F(OutOfBoundsDeath, SharedWrite) {
  EXPECT_DEATH((void)launch(shared_overrun_kernel, args(25), {.threads = 1, .shared_bytes = 100}), "AddressSanitizer");
}
TEST_F(OutOfBoundsDeath, AsyncCopy) {
  EXPECT_DEATH((void)launch(async_overrun_kernel, args(40), {.threads = 1, .shared_bytes = 128}), "AddressSanitizer");
}
#else
TEST(SharedOverrun, IsAnErrorWithoutSanitizersToo) {
  for (const int at : {25, 1000, -1, -1024}) {
    const std::string error = launch(shared_overrun_kernel, VectorArgs{nullptr, nullptr, at},
                                     {.threads = 1, .shared_bytes = 100, .blocks = 2});
    EXPECT_TRUE(mentions(error, "outside of the 100 bytes")) << at << error;
  }
  EXPECT_EQ(launch(shared_overrun_kernel, VectorArgs{nullptr, nullptr, 24}, {.threads = 1, .shared_bytes = 100}), "");
}

TEST(OutOfBoundsDeath, NeedsAddressSanitizer) {
  GTEST_SKIP() << "out-of-bounds accesses are caught in builds with AddressSanitizer (-DCUDABK_SANITIZE=ON) only";
}
#endif

}  // namespace
}  // namespace cudabk
