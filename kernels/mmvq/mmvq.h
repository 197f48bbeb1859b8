// Quantized matrix x a few columns. The lanes of Warps warps share Rows rows: each lane takes every (32 * Warps)-th
// slice of the row, multiplies its runs of 16 codes with the activation bytes by dp4a, and scales once per run.
#pragma once

#include "formats/all.h"
#include "mmvq/vector.h"

namespace cudabk {

// A lane's slice of one column's activations, in registers.
template <class F>
struct ActivationSlice {
  u32x4 codes[F::kShape.chunks()];
  ActivationScale scales[F::kShape.runs];
};

// Where a lane reads one column: its first chunk and scale, the rest 32 places apart.
struct ActivationCursor {
  const u32x4* codes;
  const ActivationScale* scales;
};

template <class F>
ActivationSlice<F> load_activations(ActivationCursor x) {
  ActivationSlice<F> s;
  for (int i = 0; i < F::kShape.chunks(); ++i) {
    s.codes[i] = load_readonly(x.codes + i * kWarpSize);
  }
  for (int run = 0; run < F::kShape.runs; ++run) {
    s.scales[run] = load_readonly(x.scales + run * kWarpSize);
  }
  return s;
}

// One run of weights times the same run of activations.
template <class F>
float dot_run(const Codes<F::kShape.run_length>& w, f32x2 scale, const ActivationSlice<F>& x, int run) {
  constexpr int kChunks = F::kShape.run_length / 16;
  int sum = 0;
  for (int i = 0; i < kChunks; ++i) {
    const u32x4 four = x.codes[run * kChunks + i];
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
    for (int j = 0; j < 4; ++j) {
      const uint32_t codes = w.words[4 * i + j];
      const int activations = static_cast<int>(words[j]);
      sum = F::kSigned ? dp4a(static_cast<int>(codes), activations, sum) : dp4a_us(codes, activations, sum);
    }
  }
  const float value = scale.x * static_cast<float>(sum);
  return (F::kHasOffset ? fma_f(scale.y, x.scales[run].sum, value) : value) * x.scales[run].d;
}

template <class F, int Rows>
void accumulate_column(float (&sum)[Rows], const typename F::Slice (&w)[Rows], int part, const ActivationSlice<F>& x) {
  for (int r = 0; r < Rows; ++r) {
    for (int run = 0; run < F::kShape.runs; ++run) {
      sum[r] += dot_run<F>(F::codes(w[r], run), F::scale(w[r], part, run), x, run);
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
    // With one column its activations are loaded a step ahead like the weights; with more they would not fit.
    ActivationSlice<F> x_current = {}, x_next = {};
    if (Cols == 1 && first < blocks) {
      x_current = load_activations<F>(x);
    }
    float sum[Cols][Rows] = {};
#pragma unroll Cols* Rows <= 2 ? 2 : 1
    for (int block = first; block < blocks; block += kBlocksPerStep) {
      const ActivationCursor x_here = x;
      x.codes += Warps * kShape.chunks() * kWarpSize;
      x.scales += Warps * kShape.runs * kWarpSize;
      if (block + kBlocksPerStep < blocks) {
        for (int r = 0; r < Rows; ++r) {
          next[r] = F::load(rows[r] += kBlocksPerStep * F::kBytes, part);
        }
        if (Cols == 1) {
          x_next = load_activations<F>(x);
        }
      }
      for (int c = 0; c < Cols; ++c) {
        if (Cols > 1) {
          x_current = load_activations<F>({x_here.codes + columns[c] * code_row, x_here.scales + columns[c] * scale_row});
        }
        accumulate_column<F, Rows>(sum[c], current, part, x_current);
      }
      for (int r = 0; r < Rows; ++r) {
        current[r] = next[r];
      }
      x_current = x_next;
    }
    allow_next_kernel();
    store_sums<Cols, Warps, Rows>(sum, a.dst, {row0, col0, b, a.m, a.n}, a.epilogue);
  }
}

}  // namespace cudabk
