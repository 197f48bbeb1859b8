// RMS norm of rows, optionally times a gain. RowThreads threads share a row; a block takes Rows rows.
#pragma once

#include "common/pack.h"
#include "common/reduce.h"
#include "common/rows.h"
#include "rms_norm/args.h"

namespace cudabk {

template <int Vec>
inline float add_squares(const float (&v)[Vec], float sum) {
  for (int i = 0; i < Vec; ++i) {
    sum = fma_f(v[i], v[i], sum);
  }
  return sum;
}

template <bool Gain, int Vec>
inline void store_scaled(float* y, const float (&v)[Vec], float scale, const float (&gain)[Vec]) {
  float out[Vec];
  for (int i = 0; i < Vec; ++i) {
    out[i] = Gain ? v[i] * scale * gain[i] : v[i] * scale;
  }
  Pack<float, Vec>::store(y, out);
}

// Threads per SM that the registers must leave room for: 64 registers each. With four packs in flight per thread that
// is more than the memory's latency needs.
constexpr int kRmsNormResidentThreads = 1024;

// Packs > 0: so many packs of Vec elements per thread cover the row (RowThreads * Vec * Packs >= cols) and stay in
//   registers. 0: any length; the row is read twice, the second time from cache.
// Vec > 1: x, gain and y are aligned to Vec elements and cols is a multiple of Vec.
// Dynamic shared memory: one float per warp where RowThreads > 32.
// Every element is read and written by the same thread, so y may be x.
template <int RowThreads, int Rows, int Vec, int Packs, bool Gain>
KERNEL_MIN_BLOCKS(rms_norm, RowThreads* Rows, kRmsNormResidentThreads / (RowThreads * Rows))(RmsNormArgs p) {
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
  constexpr int kStep = RowThreads * Vec;
  const int64_t first = thread * Vec;

  // Load and sum the squares; the gain is on its way during the reduction.
  constexpr int kHeld = Packs > 0 ? Packs : 1;
  float held[kHeld][Vec] = {};
  float weight[kHeld][Vec] = {};
  float sum = 0.0f;
  if constexpr (Packs > 0) {
    for (int j = 0; j < Packs; ++j) {
      if (first + j * kStep < p.cols) {
        Pack<float, Vec>::load(x + first + j * kStep, held[j]);
        if constexpr (Gain) {
          Pack<float, Vec>::load(gain + first + j * kStep, weight[j]);
        }
      }
    }
    for (int j = 0; j < Packs; ++j) {
      sum = add_squares(held[j], sum);
    }
  } else {
    for (int64_t col = first; col < p.cols; col += kStep) {
      Pack<float, Vec>::load(x + col, held[0]);
      sum = add_squares(held[0], sum);
    }
  }
  sum = RowThreads == kWarpSize ? warp_sum(sum) : block_sum<RowThreads>(sum, shared_memory<float>());
  allow_next_kernel();
  const float scale = inverse_sqrt(sum / static_cast<float>(p.cols) + p.eps);

  // Scale and store.
  if constexpr (Packs > 0) {
    for (int j = 0; j < Packs; ++j) {
      if (first + j * kStep < p.cols) {
        store_scaled<Gain>(y + first + j * kStep, held[j], scale, weight[j]);
      }
    }
  } else {
    for (int64_t col = first; col < p.cols; col += kStep) {
      Pack<float, Vec>::load(x + col, held[0]);
      if constexpr (Gain) {
        Pack<float, Vec>::load(gain + col, weight[0]);
      }
      store_scaled<Gain>(y + col, held[0], scale, weight[0]);
    }
  }
}

}  // namespace cudabk
