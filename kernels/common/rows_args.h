// How a grid covers the rows of a tensor; filled by src/ops/row_grid.h.
#pragma once

#include "platform/types.h"

namespace cudabk {

// A block covers (Threads >> col_threads_log2) rows; (1 << col_threads_log2) threads share a row and take `packs` packs
// each. Blocks are numbered along x: block = row_group * blocks_per_row + column_part.
struct RowGrid {
  int64_t cols = 0;          // elements of a row
  int64_t rows = 0;          // ne1 * ne2 * ne3
  int64_t ne1 = 1, ne2 = 1;  // to split a row number into i1, i2, i3
  int64_t blocks_per_row = 1;
  int32_t col_threads_log2 = 0;
};

// Strides of dims 1..3 in elements; dim 0 is dense.
struct RowStrides {
  int64_t s1 = 0, s2 = 0, s3 = 0;
};

}  // namespace cudabk
