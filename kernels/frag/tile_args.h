// Products of frag weights with many columns, by warp groups (sm_90a).
#pragma once

#include "formats/frag_shape.h"
#include "mmvq/args.h"

namespace cudabk {

// Activations as f16, one power of two per column and part of k. Columns are taken in tiles of 8, k in tiles of 64:
// [batch][ceil(n / 8)][k / 64][8 pieces of k][8 columns][8 halves]; zeros past k up to a multiple of 256. For frag
// weights the two pieces of a step of 16 hold its elements in their order (frag.h): first 0, 1, 4, 5, 8, 9, 12, 13.
constexpr int kTileColumnsBytes = 1024;  // of 8 columns x 64 elements

// Codes are taken as subnormals of f16 (tile_values.h).
constexpr float kSubnormalUnit = 1.0f / (1 << 24);
// Halves are multiplied with a row's factor in two steps of at most 2^15.
constexpr float kLargestHalvesFactor = 1 << 30;

constexpr int kPackTilesThreads = 256;  // of a block that packs

struct PackTilesArgs {
  const uint8_t* x;  // f32 [k, n, b2, b3], rows dense; byte strides below
  uint8_t* tiles;
  float* scale;  // [batch][parts][n]: what results of the column are multiplied with
  int64_t nb1, nb2, nb3;
  int32_t n, b2, batch, k;
  int32_t parts;  // of k, those of the product
};

struct FragTileArgs {
  const uint8_t* weights;  // [A3][A2][strips][units][unit bytes]; strides of A2 and A3 below
  // f32 [A3][A2][strips * 16]: a power of two per row that brings its values into f16's range.
  const uint8_t* row_factor;
  const uint8_t* x;  // PackTilesArgs::tiles
  const float* x_scale;
  float* dst;             // [m, n, batch] dense; as often as there are sums of clusters
  EpilogueArgs epilogue;  // applied when there is one
  BatchArgs batch;
  int64_t stride2, stride3, factor_stride2, factor_stride3;
  int32_t m, n, units;
  int32_t parts;  // of k
};

constexpr int kTileReduceThreads = 128;  // of a block
struct AddTilePartsArgs {
  const float* partial;  // [parts][total]
  float* dst;            // [m, n, batch] dense, total elements
  EpilogueArgs epilogue;
  int64_t total, m, n;
};

// First unit of a part of k.
constexpr int part_begin(int units, int part, int parts) { return units * part / parts; }

constexpr int kFactorWarps = 8;  // of a block that computes row factors
struct FragFactorsArgs {
  const uint8_t* weights;  // [strips][units][unit bytes], slices one after the other
  float* factors;          // [strips * 16]
  int32_t units;
  int64_t strips;
};

// Bytes of shared memory of a block: a table, stages of one unit of all columns and strips, two barriers each, and a
// float per column.
constexpr int frag_tile_stage_bytes(DType type, int cols, int groups) {
  return cols * 512 + groups * 4 * frag_shape(type).unit_bytes() + 16;
}
constexpr int frag_tile_shared_bytes(DType type, int cols, int groups, int stages) {
  return frag_lookup_bytes(type) + stages * frag_tile_stage_bytes(type, cols, groups) + cols * 4;
}
// As many stages as fit, at most 4; 0 when not even 2 do.
constexpr int frag_tile_stages(DType type, int cols, int groups, int max_shared_bytes) {
  const int fit = (max_shared_bytes - frag_lookup_bytes(type) - cols * 4) / frag_tile_stage_bytes(type, cols, groups);
  return fit < 2 ? 0 : (fit < 4 ? fit : 4);
}

}  // namespace cudabk
