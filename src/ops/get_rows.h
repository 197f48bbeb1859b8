// Rows of a table by index.
#pragma once

#include "core/result.h"
#include "graph/graph.h"

namespace cudabk {

// y[:, i, j, k] = table[:, index[i, j, k], j, k].
//   table  [n, m, B1, B2]  f32, f16, bf16, i32 or a block type with a device decoder; rows dense, any other strides
//   index  [r, B1, B2]     i32, not negative and below m (not checked); any strides
//   y      [n, r, B1, B2]  f32 (i32 where the table is), dense
// kInvalid when types or shapes do not fit.
Result<Tensor*> get_rows(Graph& graph, Tensor* table, Tensor* index);

}  // namespace cudabk
