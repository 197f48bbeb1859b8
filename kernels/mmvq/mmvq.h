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

template <class F>
int dot_codes(const Codes<F::kRunLength>& w, const int8_t* x) {
  int sum = 0;
  for (int i = 0; i < F::kRunLength / 16; ++i) {
    const auto four = load_readonly(reinterpret_cast<const u32x4*>(x) + i);
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
    for (int j = 0; j < 4; ++j) {
      const uint32_t codes = w.words[4 * i + j];
      const int activations = static_cast<int>(words[j]);
      sum = F::kSigned ? dp4a(static_cast<int>(codes), activations, sum) : dp4a_us(codes, activations, sum);
    }
  }
  return sum;
}

// Sum of the activation codes that a run at `start` covers: one half of their block of 32, or both.
template <class F>
float activation_sum(const ActivationScale& s, int start) {
  const auto half = [&](int shift) { return to_float(f16{static_cast<uint16_t>(s.sums >> shift)}); };
  return F::kRunLength == kActivationBlock ? half(0) + half(16) : half(start % kActivationBlock);
}

// One run of weights times the activations at `start` of the block.
template <class F>
float dot_run(const Codes<F::kRunLength>& w, f32x2 scale, ActivationCursor x, int start) {
  const ActivationScale s = load_readonly(x.scales + start / kActivationBlock);
  float value = scale.x * static_cast<float>(dot_codes<F>(w, x.codes + start));
  if constexpr (F::kHasOffset) {
    value = fma_f(scale.y, activation_sum<F>(s, start), value);
  }
  return value * s.d;
}

template <class F, int Cols, int Rows>
void accumulate(float (&sum)[Rows][Cols], const typename F::Slice (&w)[Rows], int part, ActivationCursor x,
                const int (&columns)[Cols], int k) {
  for (int r = 0; r < Rows; ++r) {
    for (int run = 0; run < F::kRuns; ++run) {
      const Codes<F::kRunLength> codes = F::codes(w[r], run);
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
  for (int b = block_z(); b < a.batch.batch; b += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, b, a.stride2, a.stride3);
    const uint8_t* rows[Rows];
    typename F::Slice current[Rows] = {}, next[Rows] = {};
    for (int r = 0; r < Rows; ++r) {
      rows[r] = weights + (row0 + r < a.m ? row0 + r : a.m - 1) * a.row_stride + static_cast<int64_t>(first) * F::kBytes;
      if (first < blocks) {
        current[r] = F::load(rows[r], part);
      }
    }
    wait_for_previous_kernel();  // weights are constant: their first loads may overlap the kernel before this one
    const int64_t column = col0 + static_cast<int64_t>(a.n) * b;
    ActivationCursor x{a.codes + column * a.k + first * F::kBlock,
                       a.scales + (column * a.k + first * F::kBlock) / kActivationBlock};
    float sum[Rows][Cols] = {};
#pragma unroll Cols* Rows <= 2 ? 2 : 1
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
