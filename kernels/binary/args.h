#pragma once

#include "common/rows_args.h"

namespace cudabk {

// y[i] = op(a[i], b[i mod b's extents]); strides in elements, dim 0 dense in all three.
struct BinaryArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  RowGrid grid;  // rows and columns of y (and a)
  RowStrides a_strides, b_strides, y_strides;
  int64_t b_cols = 1;  // b's extents, each dividing y's
  int64_t b_ne1 = 1, b_ne2 = 1, b_ne3 = 1;
};

}  // namespace cudabk
