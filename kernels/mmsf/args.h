// 16-bit float weights streamed past activations that stay in registers.
#pragma once

#include "mmvq/args.h"

namespace cudabk {

struct MmsfArgs {
  const uint8_t* weights;  // [k, m, A2, A3] f16 or bf16, rows dense; byte strides below
  const uint8_t* x;        // [k, n, B2, B3] f32 or f16, rows dense; byte strides below
  float* dst;              // [m, n, batch] dense; with splits > 1: partial sums [splits][batch][n][m]
  EpilogueArgs epilogue;   // applied when splits == 1
  BatchArgs batch;
  int64_t row_stride, stride2, stride3;        // weights
  int64_t x_col_stride, x_stride2, x_stride3;  // activations
  int32_t m, n, k;
  int32_t splits;  // parts of k: what the warps of a block hold
};

struct MmsfReduceArgs {
  const float* partial;  // [splits][total]
  float* dst;            // [total], total = m * n * batch in that order
  EpilogueArgs epilogue;
  int64_t m, n, total;
  int32_t splits;
};

// How weights and activations are read.
enum class MmsfAccess : int32_t {
  kElements,  // any strides, any k
  kVector,    // rows start on multiples of 16 bytes, k is a multiple of 8
  kWhole,     // that, and k is a multiple of what a block holds
};

constexpr int kMmsfRows = 16;     // of a strip
constexpr int kMmsfChunk = 32;    // elements of k that four lanes take at a time, 8 each
constexpr int kMmsfPitch = 20;    // floats per column of a partial strip: no two lanes of a store share a bank
constexpr int kMmsfMaxCols = 64;  // held at a time
constexpr int kMmsfReduceThreads = 128;

// Tiles of 8 columns a block holds for n columns: 1, 2, 4 or 8.
constexpr int mmsf_tiles(int64_t n) { return n <= 8 ? 1 : (n <= 16 ? 2 : (n <= 32 ? 4 : 8)); }

// Registers a thread needs: activations, weights under way, sums, addresses and the rest.
constexpr int mmsf_registers(int tiles, int chunks) { return tiles * chunks * 4 + chunks * 8 + tiles * 4 + 48; }

// Registers of a thread when `blocks` blocks of `warps` warps share an SM, as compilers hand them out.
constexpr int mmsf_register_room(int warps, int blocks) {
  const int all = 65536 / (warps * 32 * blocks) / 8 * 8;
  return all < 255 ? all : 255;
}

// Chunks of tiles of activations that a warp loads together, as f32: as many as there are registers for.
constexpr int mmsf_together(int tiles, int chunks, int room) {
  return tiles * chunks * 4 + chunks * 8 + 140 <= room ? 8 : 4;
}

// Two buffers of partial strips, and the factors of the warps' columns.
constexpr int mmsf_shared_bytes(int warps, int tiles) { return 4 * warps * tiles * 8 * (2 * kMmsfPitch + 1); }

// ---- the ring of weights in shared memory ----

constexpr int kMmsfRingMaxCols = 32;  // of more, warps exchange sums for longer than weights take to arrive

// Bytes from row to row of a stage of `chunks` chunks: an odd number of 64, so that neighbouring rows do not share
// banks.
constexpr int mmsf_stage_pitch(int chunks) { return (chunks | 1) * kMmsfChunk * 2; }

constexpr int mmsf_ring_registers(int tiles, int chunks, int stage) {
  return tiles * chunks * 4 + tiles * 4 + (stage < 4 ? stage : 4) * 8 + 56;
}

// As mmsf_together.
constexpr int mmsf_ring_together(int tiles, int chunks, int room) { return tiles * chunks * 4 + 160 <= room ? 8 : 4; }

constexpr int mmsf_ring_shared_bytes(int warps, int tiles, int stage, int slots) {
  return mmsf_shared_bytes(warps, tiles) + slots * warps * kMmsfRows * mmsf_stage_pitch(stage);
}

}  // namespace cudabk
