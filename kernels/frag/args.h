// Products with weights in the `frag` layout, by tensor cores.
#pragma once

#include "formats/frag_shape.h"
#include "mmvq/args.h"

namespace cudabk {

// Activations as f16 in the order of the product's second operand. Columns are taken in tiles of 8, k in units of 256.
// A unit of a tile is [8 steps of 32][column g][t][8 halves]: elements 2t, 2t + 1, 2t + 8, 2t + 9, 2t + 16, 2t + 17,
// 2t + 24, 2t + 25 of the step; then the start values [group][t][4 floats]: for columns 2t and 2t + 1 and even rows
// h = 0, then the same for h = 1: -(1024 + factor * zero) * the sum of the column's group; then per column the power of
// two that undoes the scaling of this unit.
constexpr int kColumnStepBytes = 512, kColumnDataBytes = 8 * kColumnStepBytes;
constexpr int column_start_bytes(int group) { return kFragDepth / group * 64; }
constexpr int column_unit_bytes(int group) { return kColumnDataBytes + column_start_bytes(group) + 32; }

struct PackColumnsArgs {
  const uint8_t* x;  // f32 [k, n, b2, b3], rows dense; byte strides below
  uint8_t* units;    // [batch][ceil(n / 8)][units][column_unit_bytes]
  float zero[4];     // 1024 + factor * zero of (parity of the group, h): index 2 * parity + h
  int64_t nb1, nb2, nb3;
  int32_t n, b2, batch, k;
};

struct FragArgs {
  const uint8_t* weights;  // [A3][A2][strips][units][unit bytes]; strides of A2 and A3 below
  const uint8_t* x;        // PackColumnsArgs::units
  float* dst;              // [m, n, batch] dense
  EpilogueArgs epilogue;
  BatchArgs batch;
  int64_t stride2, stride3;
  int32_t m, n, units;
};

// Weights between the raw and the `frag` layout (frag/repack.h): slices of dense m x k matrices.
struct RepackArgs {
  const uint8_t* src;
  uint8_t* dst;
  int64_t row_bytes;  // of a raw row
  int32_t m, units;   // of a slice: rows, units of k
  int64_t count;      // units of all slices
};

struct DequantizeFragArgs {
  const uint8_t* weights;  // [A3][A2][strips][units][unit bytes]; byte strides of A2 and A3 below
  uint8_t* dst;            // [A3][A2][m][k] of the destination type, dense
  int64_t stride2, stride3;
  int32_t a2, m, k, units;
  int64_t count;  // units of all slices
};

constexpr int kRepackThreads = 128;  // of a block, one warp per tile

// Shared memory of blocks that decode a unit to elements of `bytes` bytes, rows padded against bank conflicts.
constexpr int frag_tile_row_bytes(int bytes) { return 64 * bytes + 16; }
constexpr int dequantize_frag_shared_bytes(int bytes) { return 4 * kFragRows * frag_tile_row_bytes(bytes); }

// Shared memory of blocks that compute up to 8 columns, bytes.
constexpr int frag_vector_shared_bytes(int warps) { return (warps - 1) * 32 * 8; }
constexpr int frag_wide_shared_bytes(int warps, int strips) { return (warps - 1) * strips * 32 * 16; }

}  // namespace cudabk
