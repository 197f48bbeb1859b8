// What the vector kernels share: batch walk, the reduction over lanes and warps, the epilogue.
#pragma once

#include "mmvq/args.h"
#include "platform/platform.h"

namespace cudabk {

// Byte offset of the weights slice that batch entry b uses.
inline int64_t weight_offset(const BatchArgs& a, int b, int64_t stride2, int64_t stride3) {
  if (a.batch == 1) {
    return 0;
  }
  const int i2 = b % a.b2, i3 = b / a.b2;
  return i2 / a.ratio2 * stride2 + i3 / a.ratio3 * stride3;
}

inline float warp_sum(float v) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    v += shuffle_xor(v, mask);
  }
  return v;
}

struct OutputTile {
  int64_t row, col, batch;  // first row and column, batch entry
  int64_t m, n;             // extents of dst
};

// Adds the partial sums of all lanes and warps in a fixed order and stores the Rows x Cols tile.
template <int Cols, int Warps, int Rows>
void store_sums(const float (&sum)[Cols][Rows], float* dst, const OutputTile& tile, const EpilogueArgs& epilogue) {
  float* partial = shared_memory<float>();  // [Warps][Rows * Cols]
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) {
      const float total = warp_sum(sum[c][r]);
      if (lane() == 0) {
        partial[(warp() * Rows + r) * Cols + c] = total;
      }
    }
  }
  block_sync();
  const int i = thread_x();
  const int64_t row = tile.row + i / Cols, col = tile.col + i % Cols;
  if (i < Rows * Cols && row < tile.m && col < tile.n) {
    float total = 0;
    for (int w = 0; w < Warps; ++w) {
      total += partial[w * Rows * Cols + i];
    }
    if (epilogue.addend != nullptr) {
      total += epilogue.addend[row + col * epilogue.column_stride + tile.batch * epilogue.batch_stride];
    }
    dst[row + tile.m * (col + tile.n * tile.batch)] = total;
  }
  block_sync();  // the next batch entry reuses the memory
}

}  // namespace cudabk
