// The end of frag products: the sums of warps that shared rows are added in a fixed order, then stored.
#pragma once

#include "formats/frag.h"
#include "frag/args.h"
#include "frag/narrow.h"
#include "platform/platform.h"

namespace cudabk {

inline void store_frag_value(const FragArgs& a, int batch, int64_t row, int64_t col, float v) {
  if (row < a.m && col < a.n) {
    if (a.epilogue.addend != nullptr) {
      v += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
    }
    a.dst[row + a.m * (col + static_cast<int64_t>(a.n) * batch)] = v;
  }
}

// Where warps leave their sums, behind the table at the beginning of shared memory.
template <class Slot>
Slot* sum_slots(int table_bytes) {
  return reinterpret_cast<Slot*>(shared_memory<uint8_t>() + table_bytes);
}

// A warp's part of a strip: rows g and g + 8, column Period::result_column(), spread over the lanes that hold it.
template <int Strips>
void leave_narrow(f32x2* slots, const float (&sum)[2], int warp_of_strip, int strip) {
  slots[(warp_of_strip * Strips + strip) * kWarpSize + lane()] = {sum[0], sum[1]};
}
// Adds what the Warps warps of each strip have left, and stores it.
template <DType T, int Cols, int Strips, int Warps>
void finish_narrow(const f32x2* slots, const FragArgs& a, int batch) {
  constexpr FragShape S = frag_shape(T);
  using P = Period<S, Cols>;
  block_sync();
  if (warp() < Strips) {
    float total[2] = {0, 0};
    for (int w = 0; w < Warps; ++w) {
      const f32x2 v = slots[(w * Strips + warp()) * kWarpSize + lane()];
      total[0] += v.x;
      total[1] += v.y;
    }
    for (int h = 0; h < 2; ++h) {
      for (int mask = P::kGroups / 4; mask > 0; mask /= 2) {
        total[h] += shuffle_xor(total[h], mask);
      }
    }
    if (P::result_group() == 0) {
      const int64_t row = (static_cast<int64_t>(block_x()) * Strips + warp()) * kFragRows + lane() / 4;
      for (int h = 0; h < 2; ++h) {
        store_frag_value(a, batch, row + 8 * h, static_cast<int64_t>(block_y()) * Cols + P::result_column(),
                         total[h] * frag_row_factor(S, h));
      }
    }
  }
  block_sync();  // the slots are used again
}

// sum: as the products leave it, per strip and column tile: rows g, g + 8 and columns 2t, 2t + 1.
template <DType T, int Tiles, int Strips, int Warps>
void finish_wide(float (&sum)[Strips][Tiles][4], const FragArgs& a, int batch) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kParts = Strips * Tiles;
  auto* slots = sum_slots<f32x4>(frag_lookup_bytes(T));  // [warp][strip][tile][lane]
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const float(&v)[4] = sum[i / Tiles][i % Tiles];
    slots[(warp() * kParts + i) * kWarpSize + lane()] = {v[0], v[1], v[2], v[3]};
  }
  block_sync();
  for (int i = warp(); i < kParts; i += Warps) {
    float total[4] = {};
    for (int w = 0; w < Warps; ++w) {
      const f32x4 v = slots[(w * kParts + i) * kWarpSize + lane()];
      total[0] += v.x, total[1] += v.y, total[2] += v.z, total[3] += v.w;
    }
    const int64_t row = (static_cast<int64_t>(block_x()) * Strips + i / Tiles) * kFragRows + lane() / 4;
    const int64_t col = (static_cast<int64_t>(block_y()) * Tiles + i % Tiles) * 8 + 2 * (lane() % 4);
    for (int j = 0; j < 4; ++j) {
      store_frag_value(a, batch, row + 8 * (j / 2), col + j % 2, total[j] * frag_row_factor(S, j / 2));
    }
  }
  block_sync();  // the slots are used again
}

}  // namespace cudabk
