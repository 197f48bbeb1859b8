// Quantized matrix x a few columns. The lanes of Warps warps share Rows rows: each lane takes every (32 * Warps)-th
// slice of the row, multiplies its runs of 16 codes with the activation bytes by dp4a, and scales once per run.
#pragma once

#include "formats/all.h"
#include "mmvq/vector.h"

namespace cudabk {

// One run of 16 weights times 16 activation bytes.
template <bool HasOffset>
float dot_run(u32x4 w, f32x2 scale, const int8_t* codes, const ActivationScale* scales, int start) {
  const auto x = load_readonly(reinterpret_cast<const u32x4*>(codes + start));
  const ActivationScale s = load_readonly(scales + start / kActivationBlock);
  int sum = dp4a(static_cast<int>(w.x), static_cast<int>(x.x), 0);
  sum = dp4a(static_cast<int>(w.y), static_cast<int>(x.y), sum);
  sum = dp4a(static_cast<int>(w.z), static_cast<int>(x.z), sum);
  sum = dp4a(static_cast<int>(w.w), static_cast<int>(x.w), sum);
  float value = scale.x * static_cast<float>(sum);
  if constexpr (HasOffset) {
    value += scale.y * static_cast<float>(s.sum[start / kRunLength % 2]);
  }
  return value * s.d;
}

template <DType T, int Cols, int Rows>
void accumulate(float (&sum)[Rows][Cols], const typename Format<T>::Slice (&w)[Rows], int slice, const MmvqArgs& a,
                const int64_t (&x_rows)[Cols]) {
  using F = Format<T>;
  for (int r = 0; r < Rows; ++r) {
    for (int run = 0; run < F::kRuns; ++run) {
      const u32x4 codes = F::codes(w[r], run);
      const f32x2 scale = F::scale(w[r], slice, run);
      const int start = F::run_start(slice, run);
      for (int c = 0; c < Cols; ++c) {
        sum[r][c] += dot_run<F::kHasOffset>(codes, scale, a.codes + x_rows[c] * a.k,
                                            a.scales + x_rows[c] * (a.k / kActivationBlock), start);
      }
    }
  }
}

// grid: x = ceil(m / Rows), y = ceil(n / Cols), z = batch (looped above the grid limit).
template <DType T, int Cols, int Warps, int Rows>
KERNEL(mmvq, Warps* kWarpSize)(MmvqArgs a) {
  using F = Format<T>;
  using Slice = typename F::Slice;
  constexpr int kStep = Warps * kWarpSize;
  const int slices = a.k / slice_elements<T>();
  const int64_t row0 = static_cast<int64_t>(block_x()) * Rows, col0 = static_cast<int64_t>(block_y()) * Cols;
  bool waited = false;
  for (int64_t b = block_z(); b < a.batch.batch; b += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, b, a.stride2, a.stride3);
    const uint8_t* rows[Rows];
    int64_t x_rows[Cols];
    for (int r = 0; r < Rows; ++r) {
      rows[r] = weights + (row0 + r < a.m ? row0 + r : a.m - 1) * a.row_stride;  // rows past the end: read, not stored
    }
    for (int c = 0; c < Cols; ++c) {
      x_rows[c] = (col0 + c < a.n ? col0 + c : a.n - 1) + a.n * b;
    }
    float sum[Rows][Cols] = {};
    Slice current[Rows] = {}, next[Rows] = {};
    int slice = thread_x();
    for (int r = 0; slice < slices && r < Rows; ++r) {
      current[r] = F::load(rows[r], slice);
    }
    if (!waited) {  // weights are constant, so their first loads may overlap the kernel before this one
      wait_for_previous_kernel();
      waited = true;
    }
    for (; slice < slices; slice += kStep) {
      for (int r = 0; slice + kStep < slices && r < Rows; ++r) {
        next[r] = F::load(rows[r], slice + kStep);
      }
      accumulate<T, Cols, Rows>(sum, current, slice, a, x_rows);
      for (int r = 0; r < Rows; ++r) {
        current[r] = next[r];
      }
    }
    allow_next_kernel();
    store_sums<Cols, Warps, Rows>(sum, a.dst, {row0, col0, b, a.m, a.n}, a.epilogue);
  }
}

}  // namespace cudabk
