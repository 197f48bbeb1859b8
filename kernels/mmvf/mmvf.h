// Float matrix x a few columns, f32 arithmetic. Vector: 8 elements a lane and step (needs 16-byte aligned rows and
// k % 8 == 0); otherwise one element.
#pragma once

#include "formats/floats.h"
#include "mmvf/args.h"
#include "mmvq/vector.h"

namespace cudabk {

template <DType W, DType X, int Cols, int Rows, int Vec>
void accumulate_floats(float (&sum)[Cols][Rows], const uint8_t* const (&rows)[Rows], const uint8_t* const (&xs)[Cols],
                       int64_t i) {
  if constexpr (Vec == 1) {
    for (int c = 0; c < Cols; ++c) {
      const float x = load_float<X>(xs[c] + i * block_bytes(X));
      for (int r = 0; r < Rows; ++r) {
        sum[c][r] = fma_f(load_float<W>(rows[r] + i * block_bytes(W)), x, sum[c][r]);
      }
    }
  } else {
    float w[Rows][Vec];
    for (int r = 0; r < Rows; ++r) {
      load_floats<W>(rows[r] + i * block_bytes(W), w[r]);
    }
    for (int c = 0; c < Cols; ++c) {
      float x[Vec];
      load_floats<X>(xs[c] + i * block_bytes(X), x);
      for (int r = 0; r < Rows; ++r) {
        for (int v = 0; v < Vec; ++v) {
          sum[c][r] = fma_f(w[r][v], x[v], sum[c][r]);
        }
      }
    }
  }
}

// grid: x = ceil(m / Rows), y = ceil(n / Cols), z = batch (looped above the grid limit).
template <DType W, DType X, int Cols, int Warps, int Rows, int Vec>
KERNEL(mmvf, Warps* kWarpSize)(MmvfArgs a) {
  const int64_t row0 = static_cast<int64_t>(block_x()) * Rows, col0 = static_cast<int64_t>(block_y()) * Cols;
  wait_for_previous_kernel();
  for (int b = block_z(); b < a.batch.batch; b += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, b, a.stride2, a.stride3);
    const uint8_t* x = a.x + b % a.batch.b2 * a.x_stride2 + b / a.batch.b2 * a.x_stride3;
    const uint8_t *rows[Rows], *xs[Cols];
    for (int r = 0; r < Rows; ++r) {
      rows[r] = weights + (row0 + r < a.m ? row0 + r : a.m - 1) * a.row_stride;
    }
    for (int c = 0; c < Cols; ++c) {
      xs[c] = x + (col0 + c < a.n ? col0 + c : a.n - 1) * a.x_col_stride;
    }
    float sum[Cols][Rows] = {};
    for (int64_t i = static_cast<int64_t>(thread_x()) * Vec; i < a.k; i += Warps * kWarpSize * Vec) {
      accumulate_floats<W, X, Cols, Rows, Vec>(sum, rows, xs, i);
    }
    store_sums<Cols, Warps, Rows>(sum, a.dst, {row0, col0, b, a.m, a.n}, a.epilogue);
  }
  allow_next_kernel();
}

}  // namespace cudabk
