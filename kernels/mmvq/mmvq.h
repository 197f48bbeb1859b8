// Quantized matrix x a few columns. The lanes of Warps warps share Rows rows: each lane takes every (32 * Warps)-th
// slice of the row, multiplies its runs of 16 codes with the activation bytes by dp4a, and scales once per run.
#pragma once

#include "formats/all.h"
#include "mmvq/vector.h"

namespace cudabk {

// Where a lane reads one column of activations: its first chunk and scale, the rest 32 places apart.
struct ActivationCursor {
  const u32x4* codes;
  const ActivationScale* scales;
};

// 16 weights times 16 activations, added to `sum`.
template <bool Signed>
int dot_chunk(const uint32_t* codes, u32x4 x, int sum) {
  const uint32_t words[4] = {x.x, x.y, x.z, x.w};
  for (int i = 0; i < 4; ++i) {
    const int activations = static_cast<int>(words[i]);
    sum = Signed ? dp4a(static_cast<int>(codes[i]), activations, sum) : dp4a_us(codes[i], activations, sum);
  }
  return sum;
}

// One run of Rows rows (decoded once) times the same run of Cols columns (loaded once).
template <class F, int Cols, int Rows>
void accumulate_run(float (&sum)[Cols][Rows], const typename F::Slice (&w)[Rows], int part, int run, ActivationCursor x,
                    const int (&code_offsets)[Cols], const int (&scale_offsets)[Cols]) {
  constexpr int kChunks = F::kShape.run_length / 16;
  Codes<F::kShape.run_length> codes[Rows];
  f32x2 scales[Rows];
  for (int r = 0; r < Rows; ++r) {
    codes[r] = F::codes(w[r], run);
    scales[r] = F::scale(w[r], part, run);
  }
  for (int c = 0; c < Cols; ++c) {
    int dots[Rows] = {};
    for (int i = 0; i < kChunks; ++i) {
      const u32x4 chunk = load_fresh(x.codes + code_offsets[c] + (run * kChunks + i) * kWarpSize);
      for (int r = 0; r < Rows; ++r) {
        dots[r] = dot_chunk<F::kSigned>(codes[r].words + 4 * i, chunk, dots[r]);
      }
    }
    const ActivationScale s = load_fresh(x.scales + scale_offsets[c] + run * kWarpSize);
    for (int r = 0; r < Rows; ++r) {
      const float value = scales[r].x * static_cast<float>(dots[r]);
      sum[c][r] = fma_f(F::kHasOffset ? fma_f(scales[r].y, s.sum, value) : value, s.d, sum[c][r]);
    }
  }
}

// Brings what this block will read of a row into L2 while it waits for the activations.
inline void prefetch_row(const uint8_t* row, int bytes, int threads) {
  constexpr int kLine = 128;  // hardware: bytes of a cache line
  for (int i = thread_x() * kLine; i < bytes; i += threads * kLine) {
    prefetch_l2(row + i);
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
  int code_offsets[Cols], scale_offsets[Cols];  // from col0; columns and rows past the end are read again, not stored
  for (int c = 0; c < Cols; ++c) {
    const int column = col0 + c < a.n ? c : static_cast<int>(a.n - 1 - col0);
    code_offsets[c] = column * code_row;
    scale_offsets[c] = column * scale_row;
  }
  for (int b = block_z(); b < a.batch.batch; b += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, b, a.stride2, a.stride3);
    const uint8_t* rows[Rows];
    typename F::Slice current[Rows] = {}, next[Rows] = {};
    for (int r = 0; r < Rows; ++r) {
      rows[r] = weights + (row0 + r < a.m ? row0 + r : a.m - 1) * a.row_stride;
      prefetch_row(rows[r], blocks * F::kBytes, Warps * kWarpSize);
      rows[r] += static_cast<int64_t>(first) * F::kBytes;
      if (first < blocks) {
        current[r] = F::load(rows[r], part);
      }
    }
    wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
    const int64_t column = col0 + static_cast<int64_t>(a.n) * b;
    ActivationCursor x{
        reinterpret_cast<const u32x4*>(a.codes) + column * code_row + warp() * kShape.chunks() * kWarpSize + lane(),
        a.scales + column * scale_row + warp() * kShape.runs * kWarpSize + lane()};
    float sum[Cols][Rows] = {};
#pragma unroll Cols* Rows <= 2 ? 2 : 1
    for (int block = first; block < blocks; block += kBlocksPerStep) {
      for (int r = 0; r < Rows; ++r) {
        rows[r] += kBlocksPerStep * F::kBytes;
        if (block + kBlocksPerStep < blocks) {
          next[r] = F::load(rows[r], part);
        }
      }
      for (int run = 0; run < kShape.runs; ++run) {
        accumulate_run<F, Cols, Rows>(sum, current, part, run, x, code_offsets, scale_offsets);
      }
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
