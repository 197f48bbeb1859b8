// Rows written into a table by index.
#pragma once

#include "core/result.h"
#include "graph/graph.h"

namespace cudabk {

// table[:, index[i, j % B2, k % B3], j, k] = rows[:, i, j, k], converted to the table's type. The result is a view of
// the table; rows that no index names keep their values, a row that two indices of a slice name gets one of them.
//   rows   [n, r, N2, N3]  f32 (f16 for an f16 table); rows dense, any other strides
//   index  [r, B2, B3]     i64 or i32, not negative and below m (not checked); B2 divides N2, B3 divides N3; any
//   strides table  [n, m, N2, N3]  f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0 or iq4_nl; rows dense, any other
//   strides
// kInvalid when types or shapes do not fit.
Result<Tensor*> set_rows(Graph& graph, Tensor* table, Tensor* rows, Tensor* index);

}  // namespace cudabk
