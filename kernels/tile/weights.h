// Loading of a weight tile: raw words into registers, later decoded to bf16 in shared memory.
#pragma once

#include "convert/convert.h"
#include "formats/all.h"
#include "formats/floats.h"
#include "tile/args.h"

namespace cudabk {

constexpr int kFloatRun = 16;  // elements of a float row that a thread takes at a time

// Quantized weights. A thread owns kCount slices of the tile; slices past the matrix decode to zero.
template <DType T, int TileM>
struct WeightTile {
  using F = Format<T>;
  static constexpr int kStep = tile_k_step(T);
  static constexpr int kSlicesPerRow = kStep / slice_elements<T>();
  static constexpr int kCount = (TileM * kSlicesPerRow + kTileThreads - 1) / kTileThreads;

  typename F::Slice slices[kCount];

  void load(const uint8_t* weights, int64_t row_stride, int64_t row0, int m, int k, int step) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = i * kTileThreads + thread_x();
      const int64_t row = row0 + item / kSlicesPerRow;
      const int slice = step * kSlicesPerRow + item % kSlicesPerRow;
      if (item < TileM * kSlicesPerRow && row < m && slice < k / slice_elements<T>()) {
        slices[i] = load_slice<T>(weights + row * row_stride, slice);
      }
    }
  }
  void store(uint16_t* tile, int64_t row0, int m, int k, int step) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = i * kTileThreads + thread_x();
      if (item >= TileM * kSlicesPerRow) {
        continue;
      }
      const int row = item / kSlicesPerRow, slice = step * kSlicesPerRow + item % kSlicesPerRow;
      const bool inside = row0 + row < m && slice < k / slice_elements<T>();
      for (int run = 0; run < F::kShape.runs; ++run) {
        float v[F::kShape.run_length] = {};
        if (inside) {
          decode_run<T>(slices[i], slice % F::kShape.parts, run, v);
        }
        const int column =
            slice / F::kShape.parts * F::kBlock + F::run_offset(slice % F::kShape.parts, run) - step * kStep;
        store_run<DType::bf16>(reinterpret_cast<uint8_t*>(tile + row * (kStep + kTileRowPadding) + column), v);
      }
    }
  }
};

// Float weights: a slice is a run of 16. Vector: rows are 16-byte aligned and k is a multiple of 16.
template <DType T, int TileM, bool Vector>
struct FloatTile {
  static constexpr int kStep = tile_k_step(T);
  static constexpr int kRunsPerRow = kStep / kFloatRun;
  static constexpr int kCount = (TileM * kRunsPerRow + kTileThreads - 1) / kTileThreads;

  float values[kCount][kFloatRun];

  void load(const uint8_t* weights, int64_t row_stride, int64_t row0, int m, int k, int step) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = i * kTileThreads + thread_x();
      const int64_t row = row0 + item / kRunsPerRow;
      const int start = step * kStep + item % kRunsPerRow * kFloatRun;
      const uint8_t* p = weights + row * row_stride + static_cast<int64_t>(start) * block_bytes(T);
      const int valid = item < TileM * kRunsPerRow && row < m ? k - start : 0;
      if (Vector && valid >= kFloatRun) {
        load_floats<T>(p, values[i]);
      } else {
        for (int j = 0; j < kFloatRun; ++j) {
          values[i][j] = j < valid ? load_float<T>(p + j * block_bytes(T)) : 0.0f;
        }
      }
    }
  }
  void store(uint16_t* tile, int64_t /*row0*/, int /*m*/, int /*k*/, int /*step*/) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int item = i * kTileThreads + thread_x();
      if (item < TileM * kRunsPerRow) {
        uint16_t* run = tile + item / kRunsPerRow * (kStep + kTileRowPadding) + item % kRunsPerRow * kFloatRun;
        store_run<DType::bf16>(reinterpret_cast<uint8_t*>(run), values[i]);
      }
    }
  }
};

}  // namespace cudabk
