// Quantized matrix x a few columns. The lanes of Warps warps share Rows rows: each lane takes every (32 * Warps)-th
// slice of the row, multiplies its runs of 16 codes with the activation bytes by dp4a, and scales once per run.
#pragma once

#include "formats/all.h"
#include "mmvq/vector.h"

namespace cudabk {

// Where a lane reads the activations of one column: bytes and scales of the block it is at.
struct ActivationCursor {
  const int8_t* codes;
  const ActivationScale* scales;
};

template <bool Signed>
int dot_words(u32x4 w, u32x4 x) {
  const auto step = [](uint32_t a, uint32_t b, int sum) {
    return Signed ? dp4a(static_cast<int>(a), static_cast<int>(b), sum) : dp4a_us(a, static_cast<int>(b), sum);
  };
  return step(w.w, x.w, step(w.z, x.z, step(w.y, x.y, step(w.x, x.x, 0))));
}

// One run of 16 weights times the activations at `start` of the block.
template <class F>
float dot_run(u32x4 w, f32x2 scale, ActivationCursor x, int start) {
  const ActivationScale s = load_readonly(x.scales + start / kActivationBlock);
  float value = scale.x * static_cast<float>(
                              dot_words<F::kSigned>(w, load_readonly(reinterpret_cast<const u32x4*>(x.codes + start))));
  if constexpr (F::kHasOffset) {
    value += scale.y * to_float(f16{static_cast<uint16_t>(s.sums >> (start % kActivationBlock))});
  }
  return value * s.d;
}

template <class F, int Cols, int Rows>
void accumulate(float (&sum)[Rows][Cols], const typename F::Slice (&w)[Rows], int part, ActivationCursor x,
                const int (&columns)[Cols], int k) {
  for (int r = 0; r < Rows; ++r) {
    for (int run = 0; run < F::kRuns; ++run) {
      const u32x4 codes = F::codes(w[r], run);
      const f32x2 scale = F::scale(w[r], part, run);
      for (int c = 0; c < Cols; ++c) {
        const ActivationCursor column{x.codes + columns[c] * k, x.scales + columns[c] * (k / kActivationBlock)};
        sum[r][c] += dot_run<F>(codes, scale, column, F::run_offset(part, run));
      }
    }
  }
}

// grid: x = ceil(m / Rows), y = ceil(n / Cols), z = batch (looped above the grid limit).
template <DType T, int Cols, int Warps, int Rows>
KERNEL(mmvq, Warps* kWarpSize)(MmvqArgs a) {
  using F = Format<T>;
  constexpr int kBlocksPerStep = Warps * kWarpSize / F::kParts;  // a lane keeps its part and walks over blocks
  const int blocks = a.k / F::kBlock, first = thread_x() / F::kParts, part = thread_x() % F::kParts;
  const int64_t row0 = static_cast<int64_t>(block_x()) * Rows, col0 = static_cast<int64_t>(block_y()) * Cols;
  int columns[Cols];  // relative to col0; columns and rows past the end are read again, not stored
  for (int c = 0; c < Cols; ++c) {
    columns[c] = col0 + c < a.n ? c : static_cast<int>(a.n - 1 - col0);
  }
  bool waited = false;
  for (int64_t b = block_z(); b < a.batch.batch; b += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, b, a.stride2, a.stride3);
    const uint8_t* rows[Rows];
    typename F::Slice current[Rows] = {}, next[Rows] = {};
    for (int r = 0; r < Rows; ++r) {
      rows[r] = weights + (row0 + r < a.m ? row0 + r : a.m - 1) * a.row_stride + static_cast<int64_t>(first) * F::kBytes;
      if (first < blocks) {
        current[r] = F::load(rows[r], part);
      }
    }
    if (!waited) {  // weights are constant, so their first loads may overlap the kernel before this one
      wait_for_previous_kernel();
      waited = true;
    }
    const int64_t column = col0 + a.n * b;
    ActivationCursor x{a.codes + column * a.k + first * F::kBlock,
                       a.scales + (column * a.k + first * F::kBlock) / kActivationBlock};
    float sum[Rows][Cols] = {};
    for (int block = first; block < blocks; block += kBlocksPerStep) {
      for (int r = 0; r < Rows; ++r) {
        rows[r] += kBlocksPerStep * F::kBytes;
        if (block + kBlocksPerStep < blocks) {
          next[r] = F::load(rows[r], part);
        }
      }
      accumulate<F, Cols, Rows>(sum, current, part, x, columns, a.k);
      for (int r = 0; r < Rows; ++r) {
        current[r] = next[r];
      }
      x.codes += kBlocksPerStep * F::kBlock;
      x.scales += kBlocksPerStep * F::kBlock / kActivationBlock;
    }
    allow_next_kernel();
    store_sums<Cols, Warps, Rows>(sum, a.dst, {row0, col0, b, a.m, a.n}, a.epilogue);
  }
}

}  // namespace cudabk
