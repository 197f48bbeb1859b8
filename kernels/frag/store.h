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

// sum: rows g and g + 8 of the strip, column Period::result_column(), spread over the lanes that hold it.
template <FragShape S, int Cols, int Warps>
void finish_narrow(float (&sum)[2], const FragArgs& a, int batch, int col0) {
  using P = Period<S, Cols>;
  auto* slots = shared_memory<f32x2>();  // [warp - 1][lane]
  for (int h = 0; h < 2; ++h) {
    for (int mask = P::kGroups / 4; mask > 0; mask /= 2) {
      sum[h] += shuffle_xor(sum[h], mask);
    }
  }
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
    if (P::result_group() == 0) {
      const int64_t row = static_cast<int64_t>(block_x()) * kFragRows + lane() / 4;
      for (int h = 0; h < 2; ++h) {
        store_frag_value(a, batch, row + 8 * h, col0 + P::result_column(), sum[h] * frag_row_factor(S, h));
      }
    }
  }
  block_sync();  // the slots are used again
}

// sum: of each strip as the products leave it: rows g, g + 8 and columns 2t, 2t + 1.
template <FragShape S, int Strips, int Warps>
void finish_wide(float (&sum)[Strips][4], const FragArgs& a, int batch) {
  auto* slots = shared_memory<f32x4>();  // [warp - 1][strip][lane]
  if (warp() > 0) {
    for (int s = 0; s < Strips; ++s) {
      slots[((warp() - 1) * Strips + s) * kWarpSize + lane()] = {sum[s][0], sum[s][1], sum[s][2], sum[s][3]};
    }
  }
  block_sync();
  for (int s = 0; s < Strips && warp() == 0; ++s) {
    for (int w = 1; w < Warps; ++w) {
      const f32x4 v = slots[((w - 1) * Strips + s) * kWarpSize + lane()];
      sum[s][0] += v.x, sum[s][1] += v.y, sum[s][2] += v.z, sum[s][3] += v.w;
    }
    const int64_t row = (static_cast<int64_t>(block_x()) * Strips + s) * kFragRows + lane() / 4;
    for (int i = 0; i < 4; ++i) {
      store_frag_value(a, batch, row + 8 * (i / 2), static_cast<int64_t>(block_y()) * 8 + 2 * (lane() % 4) + i % 2,
                       sum[s][i] * frag_row_factor(S, i / 2));
    }
  }
  block_sync();  // the slots are used again
}

}  // namespace cudabk
