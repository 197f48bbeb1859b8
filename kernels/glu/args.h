#pragma once

#include "common/rows_args.h"

namespace cudabk {

// y[i] = act(x[i]) * g[i]; x and g are two tensors or the halves of one. Strides in elements, dim 0 dense.
struct GluArgs {
  const void* x = nullptr;
  const void* g = nullptr;
  void* y = nullptr;
  RowGrid grid;
  RowStrides x_strides, g_strides, y_strides;
};

}  // namespace cudabk
