// Quantized matrix x a few columns. The lanes of Warps warps share Rows rows: each lane takes every (32 * Warps)-th
// slice of the row, multiplies its runs of 16 codes with the activation bytes by dp4a, and scales once per run.
#pragma once

#include "formats/all.h"
#include "mmvq/vector.h"

namespace cudabk {

// A lane's slice of the activations of one column: first chunk and first scale, the rest 32 places apart.
struct ActivationCursor {
  const u32x4* codes;
  const ActivationScale* scales;
};

// One run of weights times the same run of activations.
template <class F>
float dot_run(const Codes<F::kShape.run_length>& w, f32x2 scale, ActivationCursor x, int run) {
  constexpr int kChunks = F::kShape.run_length / 16;
  const ActivationScale s = load_readonly(x.scales + run * kWarpSize);
  int sum = 0;
  for (int i = 0; i < kChunks; ++i) {
    const u32x4 four = load_readonly(x.codes + (run * kChunks + i) * kWarpSize);
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
    for (int j = 0; j < 4; ++j) {
      const uint32_t codes = w.words[4 * i + j];
      const int activations = static_cast<int>(words[j]);
      sum = F::kSigned ? dp4a(static_cast<int>(codes), activations, sum) : dp4a_us(codes, activations, sum);
    }
  }
  const float value = scale.x * static_cast<float>(sum);
  return (F::kHasOffset ? fma_f(scale.y, s.sum, value) : value) * s.d;
}

// `code_row`, `scale_row`: distance between columns, in chunks and scales.
template <class F, int Cols, int Rows>
void accumulate(float (&sum)[Rows][Cols], const typename F::Slice (&w)[Rows], int part, ActivationCursor x,
                const int (&columns)[Cols], int code_row, int scale_row) {
  for (int run = 0; run < F::kShape.runs; ++run) {
    for (int r = 0; r < Rows; ++r) {
      const Codes<F::kShape.run_length> codes = F::codes(w[r], run);
      const f32x2 scale = F::scale(w[r], part, run);
      for (int c = 0; c < Cols; ++c) {
        const ActivationCursor column{x.codes + columns[c] * code_row, x.scales + columns[c] * scale_row};
        sum[r][c] += dot_run<F>(codes, scale, column, run);
      }
    }
  }
}

// grid: x = ceil(m / Rows), y = ceil(n / Cols), z = batch (looped above the grid limit).
template <DType T, int Cols, int Warps, int Rows>
KERNEL(mmvq, Warps* kWarpSize)(MmvqArgs a) {
  using F = Format<T>;
  constexpr SliceShape kShape = F::kShape;
  constexpr int kBlocksPerStep = Warps * kWarpSize / kShape.parts;  // a lane keeps its part and walks over blocks
  const int blocks = a.k / F::kBlock, first = thread_x() / kShape.parts, part = thread_x() % kShape.parts;
  const int code_row = static_cast<int>(activation_code_bytes(kShape, a.k) / 16);
  const int scale_row = static_cast<int>(activation_scales(kShape, a.k));
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
    ActivationCursor x{
        reinterpret_cast<const u32x4*>(a.codes) + column * code_row + warp() * kShape.chunks() * kWarpSize + lane(),
        a.scales + column * scale_row + warp() * kShape.runs * kWarpSize + lane()};
    float sum[Rows][Cols] = {};
#pragma unroll Cols* Rows <= 2 ? 2 : 1
    for (int block = first; block < blocks; block += kBlocksPerStep) {
      for (int r = 0; r < Rows; ++r) {
        rows[r] += kBlocksPerStep * F::kBytes;
        if (block + kBlocksPerStep < blocks) {
          next[r] = F::load(rows[r], part);
        }
      }
      accumulate<F, Cols, Rows>(sum, current, part, x, columns, code_row, scale_row);
      for (int r = 0; r < Rows; ++r) {
        current[r] = next[r];
      }
      x.codes += Warps * kShape.chunks() * kWarpSize;
      x.scales += Warps * kShape.runs * kWarpSize;
    }
    allow_next_kernel();
    store_sums<Cols, Warps, Rows>(sum, a.dst, {row0, col0, b, a.m, a.n}, a.epilogue);
  }
}

}  // namespace cudabk
