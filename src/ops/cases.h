// Helpers of the ops' axes and cases: parameters with defaults, operands in the memory layouts that cases ask for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"
#include "ops/op_def.h"

namespace cudabk {

std::string get_or(const CaseParams& params, std::string_view name, std::string_view fallback);
Result<int64_t> get_int_or(const CaseParams& params, std::string_view name, int64_t fallback);

// The axes "cols", "rows", "dim2", "dim3" (+ suffix), each 1 when absent.
Result<Shape> shape_of(const CaseParams& params, std::string_view suffix = "");

// Words of a layout axis:
//   dense           a leaf
//   half            the first half, in every dim, of a leaf twice as large
//   offset          rows of an odd pitch, starting at element 1 (float types: never 16-byte aligned)
//   window          32 columns into a leaf of 4 x cols, one more row
//   slice           the last rows of a leaf with one more row
//   permuted-ABCD   dims permuted: dim i of the leaf becomes dim "ABCD"[i]
const std::vector<std::string>& layout_words();

// A tensor of `type` and shape `ne`, a view where the layout says so.
Result<Tensor*> make_operand(Graph& graph, std::string name, DType type, Shape ne, std::string_view layout,
                             Usage usage = Usage::kCompute);

// "type=f32 cols=64 rows=3": values as they stand, none empty.
CaseParams make_case(std::string_view text);

// Bytes of the elements, whatever the strides.
double compulsory_bytes(const Tensor& t);

// The largest NMSE that rounding a result once to `type` can cause (half a unit in the last place, squared).
double rounding_nmse(DType type);

// Each distinct source once, plus the result. Operations per element of the result.
Cost element_wise_cost(const Tensor& t, double operations_per_element);

}  // namespace cudabk
