// Packs activations for products by warp groups (tile_args.h): f16 under one power of two per column and part of k
// that keeps any f32 in range.
#pragma once

#include "frag/columns.h"
#include "frag/tile_args.h"

namespace cudabk {

// Eight elements, zeros past k.
template <bool Vector>
void load_piece(const float* row, int piece, int k, float (&v)[8]) {
  const int at = 8 * piece;
  if (Vector && at + 8 <= k) {
    const f32x4 a = load_fresh(reinterpret_cast<const f32x4*>(row + at));
    const f32x4 b = load_fresh(reinterpret_cast<const f32x4*>(row + at + 4));
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  } else {
    for (int i = 0; i < 8; ++i) {
      v[i] = at + i < k ? load_fresh(row + at + i) : 0.0f;
    }
  }
}

inline float largest_magnitude(const float (&v)[8]) {
  float largest = 0;
  for (int i = 0; i < 8; ++i) {
    largest = max_f(largest, abs_f(v[i]));
  }
  return largest;
}

// Frag: in the order of frag weights (tile_args.h).
template <bool Frag>
void store_piece(uint8_t* column, int64_t piece, const float (&v)[8], float factor) {
  uint32_t w[4];
  for (int i = 0; i < 4; ++i) {
    w[i] = pack_f16(v[2 * i] * factor, v[2 * i + 1] * factor);
  }
  if constexpr (Frag) {
    uint8_t* to = column + piece / 2 * 256 + piece % 2 * 8;
    store_whole(reinterpret_cast<u32x2*>(to), u32x2{w[0], w[2]});
    store_whole(reinterpret_cast<u32x2*>(to + 128), u32x2{w[1], w[3]});
  } else {
    store_whole(reinterpret_cast<u32x4*>(column + piece * 128), u32x4{w[0], w[1], w[2], w[3]});
  }
}

// Largest magnitude over the block; `partial`: a float per warp.
inline float block_largest(float v, float* partial) {
  v = warp_largest(v);
  if (lane() == 0) {
    partial[warp()] = v;
  }
  block_sync();
  return warp_largest(lane() < kPackTilesThreads / kWarpSize ? partial[lane()] : 0.0f);
}

inline const float* tile_row(const PackTilesArgs& a, int col, int batch) {
  return reinterpret_cast<const float*>(a.x + col * a.nb1 + batch % a.b2 * a.nb2 + batch / a.b2 * a.nb3);
}

// A block per column and part. Vector: rows are 16-byte aligned. Held: pieces of 8 elements that a thread keeps in
// registers between the two passes; parts that have more are read twice. Frag: as store_piece. Shared memory: 64 bytes.
// grid: x = n, y = parts, z = batch (looped).
template <bool Vector, int Held, bool Frag>
KERNEL(pack_tiles, kPackTilesThreads)(PackTilesArgs a) {
  allow_next_kernel();
  const int col = block_x(), tiles = (a.n + 7) / 8;
  const int units = (a.k + kFragDepth - 1) / kFragDepth, part = block_y();
  const int all_pieces = units * (kFragDepth / 8);
  const int first = part_begin(units, part, a.parts) * (kFragDepth / 8) + thread_x();
  const int pieces = part_begin(units, part + 1, a.parts) * (kFragDepth / 8);  // up to the end of the part
  constexpr int kLine = 4;                                                     // pieces
  for (int piece = first + (kLine - 1) * thread_x(); piece < pieces && 8 * piece < a.k;
       piece += kLine * kPackTilesThreads) {
    prefetch_l2(tile_row(a, col, block_z()) + 8 * piece);
  }
  wait_for_previous_kernel();
  for (int batch = block_z(); batch < a.batch; batch += grid_z()) {
    const float* row = tile_row(a, col, batch);
    uint8_t* column = a.tiles + (static_cast<int64_t>(batch) * tiles + col / 8) * all_pieces * 128 + col % 8 * 16;
    float held[Held][8];
    float largest = 0;
#pragma unroll
    for (int i = 0; i < Held; ++i) {
      const int piece = first + i * kPackTilesThreads;
      if (piece < pieces) {
        load_piece<Vector>(row, piece, a.k, held[i]);
        largest = max_f(largest, largest_magnitude(held[i]));
      }
    }
    for (int piece = first + Held * kPackTilesThreads; piece < pieces; piece += kPackTilesThreads) {
      float v[8];
      load_piece<Vector>(row, piece, a.k, v);
      largest = max_f(largest, largest_magnitude(v));
    }
    const float factor = f16_factor(block_largest(largest, shared_memory<float>()));
    if (thread_x() == 0) {
      a.scale[(static_cast<int64_t>(batch) * a.parts + part) * a.n + col] = f16_inverse(factor);
    }
#pragma unroll
    for (int i = 0; i < Held; ++i) {
      const int piece = first + i * kPackTilesThreads;
      if (piece < pieces) {
        store_piece<Frag>(column, piece, held[i], factor);
      }
    }
    for (int piece = first + Held * kPackTilesThreads; piece < pieces; piece += kPackTilesThreads) {
      float v[8];
      load_piece<Vector>(row, piece, a.k, v);
      store_piece<Frag>(column, piece, v, factor);
    }
    block_sync();  // the shared memory is used again
  }
}

}  // namespace cudabk
