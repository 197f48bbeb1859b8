// Barriers in shared memory and the bulk copies they complete: a ring of two slots that one warp fills and another
// empties, in every thread order, without and with planted faults.
#include <algorithm>
#include <vector>

#include "emulator/launch.h"

namespace cudabk {
namespace {

constexpr int kSlots = 2, kSlotFloats = 32, kFills = 7;
constexpr uint32_t kSharedBytes = kSlots * (kSlotFloats * 4 + 2 * sizeof(SharedBarrier));

enum class Fault { kNone, kNoWaitForEmpty, kNoWaitForFull, kNoRelease, kReleasedTwice, kBytesMissing };

struct RingArgs {
  const float* x;  // [kFills][kSlotFloats], 16-byte aligned
  float* y;        // [kFills][kSlotFloats]
};

template <Fault Planted>
void ring_kernel(RingArgs a) {
  auto* slots = shared_memory<float>();
  auto* full = reinterpret_cast<SharedBarrier*>(slots + kSlots * kSlotFloats);
  SharedBarrier* empty = full + kSlots;
  if (thread_x() < kSlots) {
    barrier_init(full + thread_x(), 1);
    barrier_init(empty + thread_x(), 1);
    barrier_init_done();
  }
  block_sync();
  for (int fill = 0; fill < kFills; ++fill) {
    const int slot = fill % kSlots, round = fill / kSlots;
    float* memory = slots + slot * kSlotFloats;
    if (warp() == 1) {
      if (lane() == 0) {  // others could miss a phase: nothing waits for them
        if (round > 0 && Planted != Fault::kNoWaitForEmpty) {
          barrier_wait(empty + slot, (round - 1) % 2);
        }
        barrier_expect(full + slot, kSlotFloats * 4);
        const int bytes = Planted == Fault::kBytesMissing && fill == kFills - 1 ? 64 : kSlotFloats * 4;
        bulk_copy(memory, a.x + fill * kSlotFloats, bytes, full + slot);
      }
    } else {
      if (Planted != Fault::kNoWaitForFull) {
        barrier_wait(full + slot, round % 2);
      }
      a.y[fill * kSlotFloats + lane()] = memory[lane()];
      warp_sync();
      if (lane() == 0 && Planted != Fault::kNoRelease) {
        for (int times = Planted == Fault::kReleasedTwice ? 2 : 1; times > 0; --times) {
          barrier_arrive(empty + slot);
        }
      }
    }
  }
}

struct Outcome {
  int caught = 0;  // orders with an error or another result
  std::string error;
};

Outcome run(void (*kernel)(RingArgs)) {
  struct alignas(16) Input {
    float x[kFills * kSlotFloats];
  } input;
  for (int i = 0; i < kFills * kSlotFloats; ++i) {
    input.x[i] = static_cast<float>(i);
  }
  Outcome outcome;
  for (const Shape& shape : all_orders({.threads = 64, .shared_bytes = kSharedBytes})) {
    std::vector<float> y(kFills * kSlotFloats, -1);
    const std::string error = launch(kernel, RingArgs{input.x, y.data()}, shape);
    outcome.error = error.empty() ? outcome.error : error;
    outcome.caught += !error.empty() || !std::equal(y.begin(), y.end(), input.x);
  }
  return outcome;
}

TEST(SharedBarriers, ARingGoesRound) {
  const Outcome outcome = run(ring_kernel<Fault::kNone>);
  EXPECT_EQ(outcome.caught, 0) << outcome.error;
}

TEST(SharedBarriers, MissingWaitsAreFound) {
  EXPECT_GT(run(ring_kernel<Fault::kNoWaitForEmpty>).caught, 0);
  EXPECT_GT(run(ring_kernel<Fault::kNoWaitForFull>).caught, 0);
}

TEST(SharedBarriers, WaitsInVainAreReported) {
  for (const Outcome& outcome : {run(ring_kernel<Fault::kNoRelease>), run(ring_kernel<Fault::kBytesMissing>)}) {
    EXPECT_EQ(outcome.caught, 6);
    EXPECT_NE(outcome.error.find("waiting at barrier_wait"), std::string::npos) << outcome.error;
  }
}

TEST(SharedBarriers, TooManyArrivalsAreCaught) { EXPECT_GT(run(ring_kernel<Fault::kReleasedTwice>).caught, 0); }

struct AlignmentArgs {
  const float* x;
  int bytes, offset;
};
void copy_kernel(AlignmentArgs a) {
  auto* full = reinterpret_cast<SharedBarrier*>(shared_memory<float>() + 32);
  barrier_init(full, 1);
  bulk_copy(shared_memory<float>(), a.x + a.offset, a.bytes, full);
}

TEST(SharedBarriers, BulkCopiesAreOfWholeAlignedPieces) {
  alignas(16) const float x[32] = {};
  const Shape one{.threads = 1, .shared_bytes = 256};
  EXPECT_EQ(launch(copy_kernel, AlignmentArgs{x, 64, 4}, one), "");
  EXPECT_NE(launch(copy_kernel, AlignmentArgs{x, 64, 1}, one).find("misaligned source"), std::string::npos);
  EXPECT_NE(launch(copy_kernel, AlignmentArgs{x, 24, 0}, one).find("multiple of 16"), std::string::npos);
}

}  // namespace
}  // namespace cudabk
