// mmsf with weights through a ring of stages in shared memory, so that memory reads long pieces of rows and stays busy
// while warps exchange their sums. A stage is 16 rows times a piece of k, of which every warp multiplies its own part.
#pragma once

#include "mmsf/mmsf.h"

namespace cudabk {

// Which stage comes next: all parts of a strip, then those of the block's next strip.
template <int Parts>
struct StagePlace {
  int32_t strip, part = 0;

  void advance(int groups) {
    part = part + 1 == Parts ? 0 : part + 1;
    strip += part == 0 ? groups : 0;
  }
};

// Bytes of each row in a stage that begins with element k0.
template <int Stage, bool Whole>
int stage_bytes(int32_t k, int k0) {
  constexpr int kBytes = Stage * kMmsfChunk * 2;
  const int left = 2 * (k - k0);
  return Whole || left > kBytes ? kBytes : (left > 0 ? left : 0);
}

// Rows past the end of the matrix read as its last one.
inline const uint8_t* stage_row(const MmsfArgs& a, const uint8_t* weights, int strip, int row, int k0) {
  const int at = strip * kMmsfRows + row;
  return weights + static_cast<int64_t>(at < a.m ? at : a.m - 1) * a.row_stride + static_cast<int64_t>(k0) * 2;
}

// Filled by copies of 16 bytes, one group of copies per stage; every warp has a ring of its own parts and waits for
// nobody.
template <int Stage, int Slots, bool Whole>
struct WeightRing {
  static constexpr int kPitch = mmsf_stage_pitch(Stage), kSlot = kMmsfRows * kPitch;
  uint8_t* memory;  // [Slots][16][kPitch]
  int read_slot = 0, fill_slot = 0;

  explicit WeightRing(uint8_t* ring) : memory(ring + warp() * Slots * kSlot) {}

  // Starts the copies of the next stage, which begins with element block_k0; past the last strip there are none.
  void fill(const MmsfArgs& a, const uint8_t* weights, int strip, int block_k0) {
    constexpr int kPieces = Stage * 4;
    const int k0 = block_k0 + warp() * Stage * kMmsfChunk;
    if (strip * kMmsfRows < a.m) {
      const int bytes = stage_bytes<Stage, Whole>(a.k, k0);
#pragma unroll
      for (int i = 0; i < kMmsfRows * kPieces / kWarpSize; ++i) {
        const int piece = i * kWarpSize + lane(), row = piece / kPieces, at = piece % kPieces * 16;
        if (Whole || at < bytes) {
          async_copy_16(memory + fill_slot * kSlot + row * kPitch + at, stage_row(a, weights, strip, row, k0) + at);
        }
      }
    }
    async_commit();
    fill_slot = fill_slot + 1 == Slots ? 0 : fill_slot + 1;
  }
  // This warp's part of the oldest stage, complete.
  const uint8_t* wait() {
    async_wait<Slots - 1>();
    warp_sync();
    return memory + read_slot * kSlot;
  }
  // Every lane has read it.
  void release() {
    warp_sync();
    read_slot = read_slot + 1 == Slots ? 0 : read_slot + 1;
  }
};

// Operand A's part of chunk c of a stage. left: elements from this lane's first one of the stage to the end of k.
template <bool Whole>
void read_chunk(const uint8_t* stage, int pitch, int c, int left, Eight (&w)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const uint8_t* at = stage + (8 * h + lane() / 4) * pitch + c * kMmsfChunk * 2 + lane() % 4 * 16;
    u32x4 raw = *reinterpret_cast<const u32x4*>(at);
    if (!Whole && left <= c * kMmsfChunk) {
      raw = {0, 0, 0, 0};
    }
    w[h] = {{raw.x, raw.y, raw.z, raw.w}};
  }
}

// A block computes part `split` of k of every groups-th strip, as in mmsf.
// grid: x = splits * groups, z = batch (looped).
template <DType W, DType X, int Tiles, int Chunks, int Warps, int Stage, int Slots, bool Whole>
KERNEL_MIN_BLOCKS(mmsf_ring, Warps* kWarpSize, 1)(MmsfArgs a) {
  using Ring = WeightRing<Stage, Slots, Whole>;
  constexpr int kStrip = 8 * Tiles * kMmsfPitch, kParts = Chunks / Stage;
  constexpr int kTogether = mmsf_ring_together(Tiles, Chunks, mmsf_register_room(Warps, 1));
  constexpr int kWide = Warps * Stage * kMmsfChunk;  // elements of k of a stage
  static_assert(Chunks % Stage == 0);
  static_assert(kArch >= 800 || Tiles == 0, "not applicable: needs the tensor cores of sm_80");
  uint8_t* memory = shared_memory<uint8_t>();
  auto* strips = reinterpret_cast<float*>(memory);  // [2][Warps][8 * Tiles][kMmsfPitch]
  float* factors = strips + 2 * Warps * kStrip + warp() * 8 * Tiles;
  Ring ring(memory + mmsf_shared_bytes(Warps, Tiles));
  const int split = block_x() % a.splits, groups = grid_x() / a.splits;
  const int block_k0 = split * Warps * Chunks * kMmsfChunk;
  const int k0 = block_k0 + warp() * Stage * kMmsfChunk + lane() % 4 * 8;  // this lane's first element
#pragma unroll 1
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3);
    int strip = block_x() / a.splits;
    StagePlace<kParts> next{strip};
    const auto fill = [&] {
      ring.fill(a, weights, next.strip, block_k0 + next.part * kWide);
      next.advance(groups);
    };
#pragma unroll 1
    for (int i = 0; i < Slots; ++i) {
      fill();
    }
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    Held<W, X, Tiles, Chunks, kTogether, true, Stage, Warps * Stage> x;
    x.load({a.x + batch % a.batch.b2 * a.x_stride2 + batch / a.batch.b2 * a.x_stride3 +
                static_cast<int64_t>(k0) * block_bytes(X),
            a.x_col_stride, a.n, a.k - k0},
           factors);
#pragma unroll 1
    for (int buffer = 0; strip * kMmsfRows < a.m; strip += groups, buffer ^= 1) {
      float sum[Tiles][4] = {};
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const uint8_t* stage = ring.wait();
#pragma unroll
        for (int c = 0; c < Stage; ++c) {
          Eight w[2];
          read_chunk<Whole>(stage, Ring::kPitch, c, a.k - k0 - part * kWide, w);
          multiply_chunk<W, Tiles>(sum, w, x.chunks[part * Stage + c]);
        }
        ring.release();
        fill();
      }
      put_sums<Tiles>(sum, strips + (buffer * Warps + warp()) * kStrip, x.scaled, factors);
      block_sync();  // every warp is done with the other buffer, too
      store_strip<Tiles, Warps>(a, batch, split, strip, strips + buffer * Warps * kStrip);
    }
    block_sync();  // the next batch entry reuses the memory
  }
}

}  // namespace cudabk
