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

// Where warps leave their sums for the first warp of their strip.
template <DType T, class Slot>
Slot* sum_slots() {
  return reinterpret_cast<Slot*>(shared_memory<uint8_t>() + frag_lookup_bytes(T));
}

// sum: rows g and g + 8 of the strip, column Period::result_column(), spread over the lanes that hold it.
template <DType T, int Cols, int Warps>
void finish_narrow(float (&sum)[2], const FragArgs& a, int batch) {
  constexpr FragShape S = frag_shape(T);
  using P = Period<S, Cols>;
  auto* slots = sum_slots<T, f32x2>();  // [warp - 1][lane]
  if (warp() > 0) {
    slots[(warp() - 1) * kWarpSize + lane()] = {sum[0], sum[1]};
  }
  block_sync();
  if (warp() == 0) {
    for (int w = 1; w < Warps; ++w) {
      const f32x2 v = slots[(w - 1) * kWarpSize + lane()];
      sum[0] += v.x;
      sum[1] += v.y;
    }
    for (int h = 0; h < 2; ++h) {
      for (int mask = P::kGroups / 4; mask > 0; mask /= 2) {
        sum[h] += shuffle_xor(sum[h], mask);
      }
    }
    if (P::result_group() == 0) {
      const int64_t row = static_cast<int64_t>(block_x()) * kFragRows + lane() / 4;
      for (int h = 0; h < 2; ++h) {
        store_frag_value(a, batch, row + 8 * h, static_cast<int64_t>(block_y()) * Cols + P::result_column(),
                         sum[h] * frag_row_factor(S, h));
      }
    }
  }
  block_sync();  // the slots are used again
}

// sum: as the products leave it, per column tile: rows g, g + 8 of the block's strip and columns 2t, 2t + 1.
template <DType T, int Tiles, int Warps>
void finish_wide(float (&sum)[Tiles][4], const FragArgs& a, int batch) {
  constexpr FragShape S = frag_shape(T);
  auto* slots = sum_slots<T, f32x4>();  // [warp - 1][tile][lane]
  for (int c = 0; c < Tiles && warp() > 0; ++c) {
    slots[((warp() - 1) * Tiles + c) * kWarpSize + lane()] = {sum[c][0], sum[c][1], sum[c][2], sum[c][3]};
  }
  block_sync();
  for (int c = 0; c < Tiles && warp() == 0; ++c) {
    for (int w = 1; w < Warps; ++w) {
      const f32x4 v = slots[((w - 1) * Tiles + c) * kWarpSize + lane()];
      sum[c][0] += v.x, sum[c][1] += v.y, sum[c][2] += v.z, sum[c][3] += v.w;
    }
    const int64_t row = static_cast<int64_t>(block_x()) * kFragRows + lane() / 4;
    const int64_t col = (static_cast<int64_t>(block_y()) * Tiles + c) * 8 + 2 * (lane() % 4);
    for (int i = 0; i < 4; ++i) {
      store_frag_value(a, batch, row + 8 * (i / 2), col + i % 2, sum[c][i] * frag_row_factor(S, i / 2));
    }
  }
  block_sync();  // the slots are used again
}

}  // namespace cudabk
