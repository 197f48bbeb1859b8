// Tensor-core tiles: weights (quantized or float) x many columns of bf16 activations.
#pragma once

#include "formats/slices.h"
#include "mmvq/args.h"

namespace cudabk {

struct TileArgs {
  const uint8_t* weights;  // [k, m, A2, A3]; byte strides below
  const uint8_t* x;        // bf16 [batch][n][k_padded], zeros beyond k
  float* dst;              // [m, n, batch] dense; with splits > 1: partial sums [splits][batch][n][m]
  EpilogueArgs epilogue;   // applied when splits == 1
  BatchArgs batch;
  int64_t row_stride, stride2, stride3;
  int32_t m, n, k, k_padded;
  int32_t splits;  // parts of k, computed by different blocks
};

struct ReduceSplitsArgs {
  const float* partial;  // [splits][batch][n][m]
  float* dst;            // [batch][n][m]
  EpilogueArgs epilogue;
  int64_t m, n, batch;
  int32_t splits;
};

// k elements per step: enough for whole slices of the type.
constexpr int tile_k_step(DType weights) { return slice_span(weights); }

constexpr int kTileThreads = 128;
constexpr int kTileStages = 2;
constexpr int kTileRowPadding = 8;  // bf16 elements; keeps ldmatrix free of bank conflicts

constexpr int tile_shared_bytes(int tile_m, int tile_n, int k_step) {
  return kTileStages * (tile_m + tile_n) * (k_step + kTileRowPadding) * 2;
}

}  // namespace cudabk
