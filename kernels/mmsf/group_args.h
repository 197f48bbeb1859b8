// Products of 16-bit float weights with up to 64 columns, by warp groups (sm_90a).
#pragma once

#include "frag/tile_args.h"

namespace cudabk {

// Activations in the weights' type, in the order of PackTilesArgs: tiles of 8 columns, whole units of 256 of k.
struct GroupArgs {
  const uint8_t* weights;  // [k, m, A2, A3] f16 or bf16, rows dense, on multiples of 16 bytes; byte strides below
  const uint8_t* x;        // PackTilesArgs::tiles
  const float* x_scale;    // f16: [batch][parts][n], what results of a column are multiplied with; bf16: null
  float* dst;              // [m, n, batch] dense; as often as there are parts
  EpilogueArgs epilogue;   // applied when there is one
  BatchArgs batch;
  int64_t row_stride, stride2, stride3;
  int32_t m, n, k;  // k: a multiple of 8
  int32_t parts;    // of k, in whole units
};

constexpr int kGroupMaxCols = 64;
// Stages of weights that are asked for before the activations have been converted: more are in the way of the kernel
// that converts them.
constexpr int kGroupAhead = 2;
constexpr int kGroupProducers = 4;      // warps of a block that fill the ring
constexpr int kGroupPackThreads = 256;  // of a block that packs bf16: 8 columns x 32 pieces

constexpr int group_threads(int groups) { return groups * 128 + kGroupProducers * 32; }

// Bytes from row to row of a stage of `depth` elements: an odd number of 16, so that 8 rows do not share banks.
constexpr int group_pitch(int depth) { return depth * 2 + 16; }
// Columns and rows of a stage, and its two barriers.
constexpr int group_stage_bytes(int cols, int groups, int depth) {
  return cols * depth * 2 + groups * 64 * group_pitch(depth) + 16;
}
constexpr int group_shared_bytes(int cols, int groups, int depth, int stages) {
  return stages * group_stage_bytes(cols, groups, depth) + cols * 4;
}
// As many stages as fit, at most 8; 0 when not even 2 do.
constexpr int group_stages(int cols, int groups, int depth, int max_shared_bytes) {
  const int fit = (max_shared_bytes - cols * 4) / group_stage_bytes(cols, groups, depth);
  return fit < 2 ? 0 : (fit < 8 ? fit : 8);
}

}  // namespace cudabk
