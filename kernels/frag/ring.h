// The units of k that a warp works through, on their way to it: a ring of slots in shared memory that the warp fills
// itself, far enough ahead to hide memory, and with no registers for what is still to come.
#pragma once

#include "frag/args.h"
#include "mmvq/vector.h"
#include "platform/platform.h"

namespace cudabk {

// What a warp walks through: every unit of the block's strips whose number is the warp's modulo the block's warps.
struct UnitWalk {
  const uint8_t* weights;        // the next unit of the first strip to ask for
  const uint8_t* columns;        // the same of the first column tile
  int64_t strip_bytes;           // from there to the next strip; 0: it is the last one
  int64_t tile_bytes;            // from there to the next column tile; 0: it is the last one
  int weight_step, column_step;  // from unit to unit of this warp, bytes
  int left;                      // units not asked for
};

// From column tile `tile` of `tiles` on.
template <int Strips, int Warps>
UnitWalk unit_walk(const FragArgs& a, int batch, int unit_bytes, int column_unit_bytes, int tiles, int tile) {
  const int strip = block_x() * Strips, strips = (a.m + kFragRows - 1) / kFragRows;
  const int64_t tile_bytes = static_cast<int64_t>(a.units) * column_unit_bytes;
  return {a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3) +
              (static_cast<int64_t>(strip) * a.units + warp()) * unit_bytes,
          a.x + (static_cast<int64_t>(batch) * tiles + tile) * tile_bytes + warp() * column_unit_bytes,
          strip + 1 < strips ? static_cast<int64_t>(a.units) * unit_bytes : 0,
          tile + 1 < tiles ? tile_bytes : 0,
          Warps * unit_bytes,
          Warps * column_unit_bytes,
          (a.units - warp() + Warps - 1) / Warps};
}

// A slot: a unit of each of Strips strips (1 or 2) of weights, then that unit of each of Tiles column tiles (1 or 2).
template <int WeightBytes, int ColumnBytes, int Strips, int Tiles, int Stages>
class UnitRing {
  static constexpr int kSlotBytes = Strips * WeightBytes + Tiles * ColumnBytes;

 public:
  // memory: frag_rings_bytes of shared memory for the block's `warps`, at a multiple of 16: slots, then barriers.
  UnitRing(uint8_t* memory, int warps)
      : slots_(memory + warp() * Stages * kSlotBytes), copies_(memory + (warps * kSlotBytes + warp() * 8) * Stages) {}

  // Asks for the weights of the first Stages units, which are constant; then, with what earlier kernels wrote in place,
  // `begin` asks for the columns of these units.
  void begin_weights(const UnitWalk& walk) {
    if (copies_.asks()) {
      for (int i = 0, slot = take_; i < Stages && i < walk.left; ++i, slot = after(slot)) {
        copy_weights(walk, i, slot);
      }
    }
  }
  void begin(UnitWalk& walk) {
    for (int i = 0, slot = take_; i < Stages; ++i, slot = after(slot)) {
      if (i < walk.left && copies_.asks()) {
        copy_columns(walk, i, slot);
      }
      copies_.close();
    }
    for (int i = 0; i < Stages; ++i) {
      advance(walk);
    }
  }

  // The next unit's slot, when it has come.
  const uint8_t* wait() {
    copies_.wait(take_, parity_);
    return slots_ + take_ * kSlotBytes;
  }
  // The slot is read: asks for the next unit in its place, if there is one.
  void next(UnitWalk& walk) {
    warp_sync();
    if (walk.left > 0 && copies_.asks()) {
      copy_weights(walk, 0, take_);
      copy_columns(walk, 0, take_);
    }
    advance(walk);
    copies_.close();
    take_ = after(take_);
    parity_ ^= take_ == 0 ? 1 : 0;
  }

 private:
  static int after(int slot) { return slot + 1 == Stages ? 0 : slot + 1; }
  static void advance(UnitWalk& walk) {
    walk.weights += walk.weight_step;
    walk.columns += walk.column_step;
    --walk.left;
  }
  // The unit `ahead` units of this warp after the next one.
  void copy_weights(const UnitWalk& walk, int ahead, int slot) {
    copies_.expect(slot, kSlotBytes);
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      copies_.copy(slot, slots_ + slot * kSlotBytes + strip * WeightBytes,
                   walk.weights + ahead * walk.weight_step + strip * walk.strip_bytes, WeightBytes);
    }
  }
  void copy_columns(const UnitWalk& walk, int ahead, int slot) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      copies_.copy(slot, slots_ + slot * kSlotBytes + Strips * WeightBytes + tile * ColumnBytes,
                   walk.columns + ahead * walk.column_step + tile * walk.tile_bytes, ColumnBytes);
    }
  }

  uint8_t* slots_;
  WarpCopies<Stages> copies_;
  int take_ = 0, parity_ = 0;
};

}  // namespace cudabk
