// Products with weights in the `frag` layout, by tensor cores.
#pragma once

#include "formats/frag_shape.h"
#include "mmvq/args.h"

namespace cudabk {

// Activations as f16 in the order of the product's second operand. Columns are taken in tiles of Cols (1, 2, 4 or 8), k
// in units of 256. A unit of a tile is [8 steps of 32][column][t][8 halves]: elements 4t .. 4t + 3 and
// 16 + 4t .. 16 + 4t + 3 of the step; then a start value per column, group and row half h:
// -(1024 + factor * zero) * the sum of the column's group, in the order of column_start_place; then per column the
// power of two that undoes the scaling of this unit.
constexpr int column_step_bytes(int cols) { return 64 * cols; }
constexpr int column_data_bytes(int cols) { return 8 * column_step_bytes(cols); }
constexpr int column_scale_place(int group, int cols) {  // bytes
  return column_data_bytes(cols) + kFragDepth / group * cols * 8;
}
constexpr int column_unit_bytes(int group, int cols) { return column_scale_place(group, cols) + 32; }
// In floats behind the data, such that the four that a lane needs are together: of 8 columns, those of columns 2t and
// 2t + 1 for h = 0, then for h = 1; of fewer, those of groups 2i and 2i + 1 of a column for h = 0, then for h = 1.
constexpr int column_start_place(int group_elements, int cols, int group, int col, int h) {
  return cols == 8 ? (group * 4 + col / 2) * 4 + 2 * h + col % 2
                   : (col * (kFragDepth / group_elements / 2) + group / 2) * 4 + 2 * h + group % 2;
}

constexpr int kPackWarps = 4;  // of a block that packs
struct PackColumnsArgs {
  const uint8_t* x;  // f32 [k, n, b2, b3], rows dense; byte strides below
  uint8_t* units;    // [batch][ceil(n / Cols)][units][column_unit_bytes]
  float zero[4];     // 1024 + factor * zero of (parity of the group, h): index 2 * parity + h
  int64_t nb1, nb2, nb3;
  int32_t n, b2, batch, k;
};

struct FragArgs {
  const uint8_t* weights;  // [A3][A2][strips][units][unit bytes]; strides of A2 and A3 below
  const uint8_t* x;        // PackColumnsArgs::units, or f32 as PackColumnsArgs::x
  float* dst;              // [m, n, batch] dense
  EpilogueArgs epilogue;
  BatchArgs batch;
  int64_t stride2, stride3;
  int64_t x_nb1, x_nb2, x_nb3;  // of x where it is f32
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

// Shared memory of blocks that decode a unit to elements of `bytes` bytes: the book of types with one, then rows,
// padded against bank conflicts.
constexpr int frag_tile_row_bytes(int bytes) { return 64 * bytes + 16; }
constexpr int dequantize_frag_shared_bytes(DType type, int bytes) {
  return frag_book_bytes(type) + 4 * kFragRows * frag_tile_row_bytes(bytes);
}

// Columns that are packed and computed together, for n of 1 to 4.
constexpr int frag_narrow_columns(int64_t n) { return n <= 1 ? 1 : (n <= 2 ? 2 : 4); }

// Shared memory of blocks that compute `strips` strips and up to 8 columns, bytes: a table, the sums of all warps, then
// their rings (frag/ring.h). warps: of a strip for frag_vector, else of the block.
constexpr int frag_narrow_sums_bytes(int strips, int warps) { return warps * strips * 32 * 8; }
constexpr int frag_narrow_rings_place(DType type, int strips, int warps) {
  return frag_lookup_bytes(type) + frag_narrow_sums_bytes(strips, warps);
}
constexpr int frag_vector_shared_bytes(DType type, int warps, int strips, int cc) {
  return frag_lookup_bytes(type, frag_wide_lookup_stride(cc)) + frag_narrow_sums_bytes(strips, warps);
}
constexpr int frag_rings_bytes(int slot_bytes, int warps, int stages) { return warps * stages * (slot_bytes + 8); }
constexpr int frag_ring_shared_bytes(DType type, int cols, int strips, int warps, int stages) {
  const FragShape s = frag_shape(type);
  return frag_narrow_rings_place(type, strips, warps) +
         frag_rings_bytes(strips * s.unit_bytes() + column_unit_bytes(s.group, cols), warps, stages);
}
constexpr int frag_wide_rings_place(DType type, int tiles, int strips, int warps) {
  return frag_lookup_bytes(type) + warps * strips * tiles * 32 * 16;
}
constexpr int frag_wide_shared_bytes(DType type, int tiles, int strips, int warps, int stages) {
  const FragShape s = frag_shape(type);
  return frag_wide_rings_place(type, tiles, strips, warps) +
         frag_rings_bytes(strips * s.unit_bytes() + tiles * column_unit_bytes(s.group, 8), warps, stages);
}

}  // namespace cudabk
