// Launches of kernels/row_moves: rows by index, and copies out of and into block types.
#pragma once

#include "ops/op_def.h"
#include "row_moves/args.h"

namespace cudabk {

// Block types that kernels can encode.
bool has_device_encoder(DType type);

// NMSE against the reference of what a kernel encodes to `type`: 0 where it follows the rules bit for bit.
double encode_nmse(DType type);

// `t` as a side of a row move: rows dense, strides whole elements or blocks.
Support check_move_side(const Tensor& t);

// The rows that are walked (of the result where rows are gathered, else of the source) and where they are on both
// sides. Strides are bytes, 0 in dims of extent 1.
struct RowMove {
  const Tensor* src = nullptr;
  const Tensor* dst = nullptr;
  const Tensor* index = nullptr;  // null: kDirect, kReshaped
  RowMap map = RowMap::kDirect;
  Shape ne{};  // elements of a row, then rows
  // Strides, and shapes of a reshaped move; the grid, the indices and the pointers are filled in by lower_row_move.
  RowMovesArgs args;
};

// Bytes from row to row in dims 1 to 3.
RowStrides byte_strides(const Tensor& t);

// One launch, whatever the types: plain to plain, block type to f32, or f32 to a block type with an encoder.
Result<Launch> lower_row_move(const RowMove& move, std::string_view label, LowerContext& ctx);

}  // namespace cudabk
