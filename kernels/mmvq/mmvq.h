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

// A run of weights times the same run of activations: its chunks and scale.
template <class F>
float dot_run(const Codes<F::kShape.run_length>& w, f32x2 scale, const u32x4* x, ActivationScale s) {
  int sum = 0;
  for (int i = 0; i < F::kShape.run_length / 16; ++i) {
    sum = dot_chunk<F::kSigned>(w.words + 4 * i, x[i], sum);
  }
  const float value = scale.x * static_cast<float>(sum);
  return (F::kHasOffset ? fma_f(scale.y, s.sum, value) : value) * s.d;
}

// Slices of Rows rows times one column: all activations of the slice are loaded first, then used by every row.
template <class F, int Rows>
void accumulate_column(float (&sum)[Rows], const typename F::Slice (&w)[Rows], int part, ActivationCursor x) {
  constexpr int kChunks = F::kShape.run_length / 16;
  u32x4 chunks[F::kShape.chunks()];
  ActivationScale scales[F::kShape.runs];
  for (int i = 0; i < F::kShape.chunks(); ++i) {
    chunks[i] = load_fresh(x.codes + i * kWarpSize);
  }
  for (int run = 0; run < F::kShape.runs; ++run) {
    scales[run] = load_fresh(x.scales + run * kWarpSize);
  }
  for (int r = 0; r < Rows; ++r) {
    for (int run = 0; run < F::kShape.runs; ++run) {
      sum[r] += dot_run<F>(F::codes(w[r], run), F::scale(w[r], part, run), chunks + run * kChunks, scales[run]);
    }
  }
}

// ... times several columns: each run is decoded once. Activations are read again for every row, from L1, so that the
// loads of all columns are in flight together; held in registers they would spill.
template <DType T, int Cols, int Rows>
void accumulate(float (&sum)[Cols][Rows], const typename Format<T>::Slice (&w)[Rows], int part, ActivationCursor x,
                const int (&code_offsets)[Cols], const int (&scale_offsets)[Cols]) {
  using F = Format<T>;
  constexpr int kChunks = F::kShape.run_length / 16;
  const auto add_run = [&](int run) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const Codes<F::kShape.run_length> codes = F::codes(w[r], run);
      const f32x2 scale = F::scale(w[r], part, run);
#pragma unroll
      for (int c = 0; c < Cols; ++c) {
        const ActivationScale s = load_fresh(x.scales + scale_offsets[c] + run * kWarpSize);
        u32x4 chunks[kChunks];
        for (int i = 0; i < kChunks; ++i) {
          chunks[i] = load_fresh(x.codes + code_offsets[c] + (run * kChunks + i) * kWarpSize);
        }
        sum[c][r] += dot_run<F>(codes, scale, chunks, s);
      }
    }
  };
  if constexpr (T == DType::q6_K && Cols == 8 &&
                Rows == 2) {  // measured: the compiler's choice takes 1.4 times as long
#pragma unroll
    for (int run = 0; run < F::kShape.runs; ++run) {
      add_run(run);
    }
  } else {
    for (int run = 0; run < F::kShape.runs; ++run) {
      add_run(run);
    }
  }
}

// Blocks per SM that must find room; 0: the compiler decides, which on some architecture costs these variants a few
// spilled bytes for one more block.
constexpr int vector_min_blocks(DType type, int cols, int warps, int rows) {
  if (warps != 4 || rows != 2) {
    return 0;
  }
  switch (type) {
    case DType::iq4_xs:
      return cols == 1 ? 4 : 0;
    case DType::q5_1:
    case DType::iq2_xs:
    case DType::iq2_s:
      return cols == 2 ? 4 : 0;
    case DType::q2_K:
      return cols == 2 ? 4 : cols == 8 ? 2 : 0;
    case DType::q3_K:
      return cols == 2 ? 4 : cols == 4 ? 2 : 0;
    case DType::q6_K:
      return cols == 8 && kArch == 1200 ? 2 : 0;  // elsewhere it fits, with more blocks
    default:
      return 0;
  }
}

// grid: x = ceil(m / Rows), y = ceil(n / Cols), z = batch (looped above the grid limit).
template <DType T, int Cols, int Warps, int Rows>
KERNEL_MIN_BLOCKS(mmvq, Warps* kWarpSize, (vector_min_blocks(T, Cols, Warps, Rows)))(MmvqArgs a) {
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
      if constexpr (Cols == 1) {
        accumulate_column<F, Rows>(sum[0], current, part, x);
      } else {
        accumulate<T, Cols, Rows>(sum, current, part, x, code_offsets, scale_offsets);
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
