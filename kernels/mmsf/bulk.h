// mmsf's ring filled by bulk copies (sm_90): one lane moves a row's piece.
#pragma once

#include "mmsf/ring.h"

namespace cudabk {

// As AsyncRing; the copies of a stage complete its barrier.
template <int Stage, int Slots, bool Whole>
struct BulkRing {
  static constexpr int kPitch = mmsf_stage_pitch(Stage), kSlot = kMmsfRows * kPitch;
  uint8_t* memory;          // [Slots][16][kPitch]
  SharedBarrier* barriers;  // [Slots], of this warp
  int read_slot = 0, fill_slot = 0, parity = 0;

  BulkRing(uint8_t* ring, uint8_t* barrier_memory)
      : memory(ring), barriers(reinterpret_cast<SharedBarrier*>(barrier_memory)) {
    if (lane() < Slots) {
      barrier_init(barriers + lane(), 1);
      barrier_init_done();
    }
    warp_sync();
  }

  void fill(const MmsfArgs& a, const uint8_t* weights, int strip, int k0) {
    if (strip * kMmsfRows < a.m) {
      const int bytes = stage_bytes<Stage, Whole>(a.k, k0);
      if (lane() == 0) {
        barrier_expect(barriers + fill_slot, kMmsfRows * bytes);
      }
      if (lane() < kMmsfRows && bytes > 0) {
        bulk_copy(memory + fill_slot * kSlot + lane() * kPitch, stage_row(a, weights, strip, lane(), k0), bytes,
                  barriers + fill_slot);
      }
      fill_slot = fill_slot + 1 == Slots ? 0 : fill_slot + 1;
    }
  }
  const uint8_t* wait() {
    barrier_wait(barriers + read_slot, parity);
    return memory + read_slot * kSlot;
  }
  void release() {
    warp_sync();
    const bool last = read_slot + 1 == Slots;
    read_slot = last ? 0 : read_slot + 1;
    parity ^= last ? 1 : 0;
  }
};

template <DType W, DType X, int Tiles, int Chunks, int Warps, int Stage, int Slots, bool Whole>
KERNEL_MIN_BLOCKS(mmsf_bulk, Warps* kWarpSize, 1)(MmsfArgs a) {
  multiply_ring<BulkRing<Stage, Slots, Whole>, W, X, Tiles, Chunks, Warps, Stage, Slots, Whole>(a);
}

}  // namespace cudabk
