// mmsf's ring filled by bulk copies (sm_90), which the warps share: a copy moves a row of the whole stage, so that few
// copies have to be issued. Two barriers per stage: full, and read by every warp.
#pragma once

#include "mmsf/ring.h"

namespace cudabk {

// As AsyncRing. A stage is refilled one stage after it was read, when the other warps have most likely read it too.
template <int Warps, int Stage, int Slots, bool Whole>
struct BulkRing {
  static constexpr int kPitch = mmsf_stage_pitch(Warps * Stage), kSlot = kMmsfRows * kPitch;
  static constexpr int kRows = kMmsfRows / Warps;  // that a warp copies
  static constexpr int kBehind = 1;
  static_assert(kMmsfRows % Warps == 0);
  uint8_t* memory;                                                     // [Slots][16][kPitch]
  SharedBarrier *full, *empty;                                         // [Slots]
  int read_slot = 0, read_parity = 0, fill_slot = 0, fill_parity = 1;  // of empty: the first fills do not wait

  explicit BulkRing(uint8_t* ring) : memory(ring) {
    full = reinterpret_cast<SharedBarrier*>(ring + Slots * kSlot);
    empty = full + Slots;
    if (thread_x() < 2 * Slots) {
      barrier_init(full + thread_x(), Warps);
      barrier_init_done();
    }
    block_sync();
  }

  void fill(const MmsfArgs& a, const uint8_t* weights, int strip, int k0) {
    if (strip * kMmsfRows < a.m) {
      const int bytes = stage_bytes<Warps * Stage, Whole>(a.k, k0);
      barrier_wait(empty + fill_slot, fill_parity);
      if (lane() == 0) {
        barrier_expect(full + fill_slot, kRows * bytes);
      }
      if (lane() < kRows && bytes > 0) {
        const int row = warp() * kRows + lane();
        bulk_copy(memory + fill_slot * kSlot + row * kPitch, stage_row(a, weights, strip, row, k0), bytes,
                  full + fill_slot);
      }
      const bool last = fill_slot + 1 == Slots;
      fill_slot = last ? 0 : fill_slot + 1;
      fill_parity ^= last ? 1 : 0;
    }
  }
  const uint8_t* wait() {
    barrier_wait(full + read_slot, read_parity);
    return memory + read_slot * kSlot + warp() * Stage * kMmsfChunk * 2;
  }
  void release() {
    warp_sync();
    if (lane() == 0) {
      barrier_arrive(empty + read_slot);
    }
    const bool last = read_slot + 1 == Slots;
    read_slot = last ? 0 : read_slot + 1;
    read_parity ^= last ? 1 : 0;
  }
};

template <DType W, DType X, int Tiles, int Chunks, int Warps, int Stage, int Slots, bool Whole>
KERNEL_MIN_BLOCKS(mmsf_bulk, Warps* kWarpSize, 1)(MmsfArgs a) {
  multiply_ring<BulkRing<Warps, Stage, Slots, Whole>, W, X, Tiles, Chunks, Warps, Stage, Slots, Whole>(a);
}

}  // namespace cudabk
