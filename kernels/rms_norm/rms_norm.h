// RMS norm of rows, optionally times a gain. RowThreads threads share a row; a block takes Rows rows.
#pragma once

#include "common/pack.h"
#include "common/reduce.h"
#include "common/rows.h"
#include "rms_norm/args.h"

namespace cudabk {

// Packs of a row that a thread keeps in registers; longer rows are read a second time (from cache).
constexpr int kRmsNormHeldPacks = 4;

// Dynamic shared memory: one float per warp where RowThreads > 32. Vec > 1: x, gain and y are aligned to Vec elements
// and cols is a multiple of Vec.
template <int RowThreads, int Rows, int Vec, bool Gain>
KERNEL(rms_norm, RowThreads* Rows)
(RmsNormArgs p) {
  static_assert(RowThreads == kWarpSize || Rows == 1, "rows that share a block are one warp each");
  wait_for_previous_kernel();
  const int thread = thread_x() % RowThreads;
  const int64_t row = static_cast<int64_t>(block_x()) * Rows + thread_x() / RowThreads;
  if (row >= p.rows) {  // a whole warp, and never with a barrier below
    return;
  }
  const RowIndex r = split_row(row, p.ne1, p.ne2);
  const float* x = p.x + row_offset(r, p.x_strides);
  float* y = p.y + row_offset(r, p.y_strides);
  const float* gain = p.gain;
  if constexpr (Gain) {
    gain += row_offset({wrap_index(r.i1, p.gain_ne1), wrap_index(r.i2, p.gain_ne2), wrap_index(r.i3, p.gain_ne3)},
                       p.gain_strides);
  }

  // Load: the first packs stay in registers; the gain is on its way during the reduction.
  constexpr int kStep = RowThreads * Vec;
  float held[kRmsNormHeldPacks][Vec] = {};
  float weight[kRmsNormHeldPacks][Vec] = {};
  for (int j = 0; j < kRmsNormHeldPacks; ++j) {
    const int64_t col = j * kStep + thread * Vec;
    if (col < p.cols) {
      Pack<float, Vec>::load(x + col, held[j]);
      if constexpr (Gain) {
        Pack<float, Vec>::load(gain + col, weight[j]);
      }
    }
  }

  // Sum of squares.
  float sum = 0.0f;
  for (int j = 0; j < kRmsNormHeldPacks; ++j) {
    for (int i = 0; i < Vec; ++i) {
      sum = fma_f(held[j][i], held[j][i], sum);
    }
  }
  constexpr int kHeldCols = kRmsNormHeldPacks * kStep;
  for (int64_t col = kHeldCols + thread * Vec; col < p.cols; col += kStep) {
    float v[Vec];
    Pack<float, Vec>::load(x + col, v);
    for (int i = 0; i < Vec; ++i) {
      sum = fma_f(v[i], v[i], sum);
    }
  }
  sum = RowThreads == kWarpSize ? warp_sum(sum) : block_sum<RowThreads>(sum, shared_memory<float>());
  allow_next_kernel();
  const float scale = inverse_sqrt(sum / static_cast<float>(p.cols) + p.eps);

  // Scale and store. Every element is read and written by the same thread, so y may be x.
  const auto emit = [&](int64_t col, const float(&v)[Vec], const float(&w)[Vec]) {
    float out[Vec];
    for (int i = 0; i < Vec; ++i) {
      out[i] = Gain ? v[i] * scale * w[i] : v[i] * scale;
    }
    Pack<float, Vec>::store(y + col, out);
  };
  for (int j = 0; j < kRmsNormHeldPacks; ++j) {
    const int64_t col = j * kStep + thread * Vec;
    if (col < p.cols) {
      emit(col, held[j], weight[j]);
    }
  }
  for (int64_t col = kHeldCols + thread * Vec; col < p.cols; col += kStep) {
    float v[Vec];
    float w[Vec] = {};
    Pack<float, Vec>::load(x + col, v);
    if constexpr (Gain) {
      Pack<float, Vec>::load(gain + col, w);
    }
    emit(col, v, w);
  }
}

}  // namespace cudabk
