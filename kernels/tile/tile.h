// Product on tensor cores: a block computes TileM rows x TileN columns with four warps. Per step of k: raw weights
// travel global -> registers -> (decoded to bf16) shared memory, activations by asynchronous copies; the next step's
// loads are in flight while mma runs on this one. Two stages, one barrier a step.
#pragma once

#include "mmvq/vector.h"
#include "tile/weights.h"

namespace cudabk {

// Arrangement of the four warps over the tile, and the fragments of one warp.
template <int TileM, int TileN>
struct TileShape {
  static constexpr int kWarpsM = TileM / 16 < 4 ? TileM / 16 : 4;
  static constexpr int kWarpsN = 4 / kWarpsM;
  static constexpr int kRows = TileM / kWarpsM / 16;  // m16 fragments of a warp
  static constexpr int kCols = TileN / kWarpsN / 8;   // n8 fragments of a warp
  static_assert(kRows >= 1 && kCols >= 1);
};

template <int TileN, int Step>
void copy_activations(uint16_t* tile, const TileArgs& a, int64_t batch, int64_t col0, int step) {
  constexpr int kChunks = Step / 8;  // 16 bytes each
  for (int i = thread_x(); i < TileN * kChunks; i += kTileThreads) {
    const int64_t col = col0 + i / kChunks;
    const bool inside = col < a.n;
    const uint8_t* src = a.x + (((inside ? col : 0) + a.n * batch) * a.k_padded + step * Step + i % kChunks * 8) * 2;
    async_copy_16(tile + i / kChunks * (Step + kTileRowPadding) + i % kChunks * 8, src, inside);
  }
}

template <int TileM, int TileN, int Step>
void multiply_step(float (&sum)[TileShape<TileM, TileN>::kRows][TileShape<TileM, TileN>::kCols][4],
                   const uint16_t* weights, const uint16_t* x) {
  using Shape = TileShape<TileM, TileN>;
  constexpr int kPitch = Step + kTileRowPadding;
  const int row0 = warp() % Shape::kWarpsM * Shape::kRows * 16, col0 = warp() / Shape::kWarpsM * Shape::kCols * 8;
  for (int k = 0; k < Step; k += 16) {
    uint32_t b[Shape::kCols][2];
#pragma unroll
    for (int c = 0; c < Shape::kCols; ++c) {
      ldmatrix_x2(b[c], x + (col0 + 8 * c + lane() % 8) * kPitch + k + lane() / 8 % 2 * 8);
    }
#pragma unroll
    for (int r = 0; r < Shape::kRows; ++r) {
      uint32_t w[4];
      ldmatrix_x4(w, weights + (row0 + 16 * r + lane() % 16) * kPitch + k + lane() / 16 * 8);
#pragma unroll
      for (int c = 0; c < Shape::kCols; ++c) {
        mma_bf16_16816(sum[r][c], w, b[c]);
      }
    }
  }
}

template <int TileM, int TileN>
void store_tile(const float (&sum)[TileShape<TileM, TileN>::kRows][TileShape<TileM, TileN>::kCols][4],
                const TileArgs& a, float* dst, int64_t batch, int64_t row_tile, int64_t col_tile) {
  using Shape = TileShape<TileM, TileN>;
  const int64_t row0 = row_tile + warp() % Shape::kWarpsM * Shape::kRows * 16 + lane() / 4;
  const int64_t col0 = col_tile + warp() / Shape::kWarpsM * Shape::kCols * 8 + lane() % 4 * 2;
#pragma unroll
  for (int r = 0; r < Shape::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Shape::kCols; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = row0 + 16 * r + i / 2 * 8, col = col0 + 8 * c + i % 2;
        if (row < a.m && col < a.n) {
          float v = sum[r][c][i];
          if (a.epilogue.addend != nullptr && a.splits == 1) {
            v += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
          }
          dst[row + a.m * (col + a.n * batch)] = v;
        }
      }
    }
  }
}

template <class Weights, int TileM, int TileN, int Step>
void tile_product(const TileArgs& a, int batch, int split, int64_t row0, int64_t col0) {
  using Shape = TileShape<TileM, TileN>;
  constexpr int kPitch = Step + kTileRowPadding;
  uint16_t* shared = shared_memory<uint16_t>();
  const auto weight_tile = [shared](bool odd) { return shared + (odd ? TileM * kPitch : 0); };
  const auto x_tile = [shared](bool odd) { return shared + (odd ? 2 * TileM + TileN : 2 * TileM) * kPitch; };
  const uint8_t* weights = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3);
  const int steps = (a.k + Step - 1) / Step;
  const int begin = static_cast<int>(static_cast<int64_t>(steps) * split / a.splits);
  const int end = static_cast<int>(static_cast<int64_t>(steps) * (split + 1) / a.splits);
  float sum[Shape::kRows][Shape::kCols][4] = {};
  Weights raw;
  if (begin < end) {
    raw.load(weights, a.row_stride, row0, a.m, a.k, begin);
    copy_activations<TileN, Step>(x_tile(false), a, batch, col0, begin);
  }
  async_commit();
  for (int step = begin; step < end; ++step) {
    const bool odd = (step - begin) % 2 != 0;
    raw.store(weight_tile(odd), row0, a.m, a.k, step);
    async_wait<0>();
    block_sync();  // this stage is complete, and nobody reads the other one any more
    if (step + 1 < end) {
      raw.load(weights, a.row_stride, row0, a.m, a.k, step + 1);
      copy_activations<TileN, Step>(x_tile(!odd), a, batch, col0, step + 1);
    }
    async_commit();
    multiply_step<TileM, TileN, Step>(sum, weight_tile(odd), x_tile(odd));
  }
  float* dst = a.dst + static_cast<int64_t>(split) * a.m * a.n * a.batch.batch;
  store_tile<TileM, TileN>(sum, a, dst, batch, row0, col0);
  block_sync();  // the next tile reuses the shared memory
}

// Blocks per SM that must find room; 0: the compiler decides, which would cost these variants a few spilled bytes.
constexpr int tile_min_blocks(DType type, int tile_m, int tile_n) {
  const bool tall = tile_m == 128 && tile_n == 16, square = tile_m == 64 && tile_n == 64;
  return tall || (square && (kArch == 1000 || (kArch == 1200 && type == DType::q5_1))) ? 3 : 0;
}
constexpr int float_tile_min_blocks(int tile_m, int tile_n, bool vector) {
  return kArch == 1000 && tile_m == 64 && tile_n == 32 && !vector ? 4 : 0;
}

// grid: x = ceil(m / TileM), y = ceil(n / TileN), z = batch * splits (looped above the grid limit).
template <DType T, int TileM, int TileN>
KERNEL_MIN_BLOCKS(mmq, kTileThreads, (tile_min_blocks(T, TileM, TileN)))(TileArgs a) {
  wait_for_previous_kernel();
  for (int z = block_z(); z < a.batch.batch * a.splits; z += grid_z()) {
    tile_product<WeightTile<T, TileM>, TileM, TileN, tile_k_step(T)>(a, z / a.splits, z % a.splits,
                                                                     static_cast<int64_t>(block_x()) * TileM,
                                                                     static_cast<int64_t>(block_y()) * TileN);
  }
  allow_next_kernel();
}

template <DType T, int TileM, int TileN, bool Vector>
KERNEL_MIN_BLOCKS(mmf, kTileThreads, (float_tile_min_blocks(TileM, TileN, Vector)))(TileArgs a) {
  wait_for_previous_kernel();
  for (int z = block_z(); z < a.batch.batch * a.splits; z += grid_z()) {
    tile_product<FloatTile<T, TileM, Vector>, TileM, TileN, tile_k_step(T)>(a, z / a.splits, z % a.splits,
                                                                            static_cast<int64_t>(block_x()) * TileM,
                                                                            static_cast<int64_t>(block_y()) * TileN);
  }
  allow_next_kernel();
}

// Adds the parts in a fixed order. grid: x = ceil(m * n * batch / Threads), looped.
template <int Threads>
KERNEL(reduce_splits, Threads)(ReduceSplitsArgs a) {
  wait_for_previous_kernel();
  const int64_t total = a.m * a.n * a.batch;
  for (int64_t i = static_cast<int64_t>(block_x()) * Threads + thread_x(); i < total;
       i += static_cast<int64_t>(grid_x()) * Threads) {
    float sum = 0;
    for (int s = 0; s < a.splits; ++s) {
      sum += a.partial[s * total + i];
    }
    if (a.epilogue.addend != nullptr) {
      const int64_t row = i % a.m, col = i / a.m % a.n, batch = i / a.m / a.n;
      sum += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
    }
    a.dst[i] = sum;
  }
  allow_next_kernel();
}

}  // namespace cudabk
