// Rows moved between tensors, converted on the way: get_rows, set_rows, and copies into or out of block types.
#pragma once

#include "common/rows_args.h"

namespace cudabk {

// Where the row that a thread works on is read and written. (i1, i2, i3) is its position in RowMovesArgs::grid.
enum class RowMap : int32_t {
  kDirect,     // at the same position on both sides
  kReshaped,   // a row is one block of 32 elements; each side counts blocks by its own shape
  kGather32,   // read from row index[i1, i2, i3] of slice (i2, i3); indices i32
  kScatter32,  // written to row index[i1, i2 % B2, i3 % B3] of slice (i2, i3); indices i32
  kScatter64,  // ... i64
};

// All strides are bytes: of dims 1, 2, 3 for src and dst, of dims 0, 1, 2 for the indices.
struct RowMovesArgs {
  const uint8_t* src = nullptr;
  uint8_t* dst = nullptr;
  const uint8_t* index = nullptr;
  RowGrid grid;  // cols: elements, or slices where rows are decoded
  RowStrides src_strides, dst_strides, index_strides;
  int64_t index_ne1 = 1, index_ne2 = 1;  // B2, B3: the indices of a slice repeat
  // kReshaped: blocks of dim 0, extents of dims 1 and 2, bytes from a block to the next.
  int64_t src_blocks = 1, src_ne1 = 1, src_ne2 = 1, src_s0 = 0;
  int64_t dst_blocks = 1, dst_ne1 = 1, dst_ne2 = 1, dst_s0 = 0;
};

constexpr int kRowMoveThreads = 256;
// Shared memory. A warp stages the run of every lane before it stores it, or the four blocks that it encoded.
constexpr int decode_stage_bytes(int run_length) { return kRowMoveThreads * run_length * 4; }
constexpr int encode_stage_bytes(int block_bytes) { return kRowMoveThreads / 8 * block_bytes; }

}  // namespace cudabk
