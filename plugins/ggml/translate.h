// From ggml nodes to the project's graph: the same operations by the builders that everything else uses. What a builder
// refuses is refused here with its reason.
#pragma once

#include <span>

#include "core/result.h"
#include "graph_scan.h"

namespace cudabk::plugin {

// The graph of `nodes`, which `scan` has gone over. Nodes without work become nothing. kUnsupported or kInvalid: no
// kernel for a node, said which.
Result<KeyedGraph> translate(std::span<ggml_tensor* const> nodes, const GraphScan& scan);

// The same for one node, be it wanted or empty: can it be done?
Result<KeyedGraph> translate_alone(const ggml_tensor& node, const GraphScan& scan);

// The type of the same number; ggml's ids are ours. kUnsupported for ids that are not known here.
Result<DType> dtype_of(ggml_type type);
// A root tensor as a leaf of its own, for sizes and layouts. kUnsupported when it is not dense.
Result<Tensor> leaf_of(const ggml_tensor& t, Usage usage);

}  // namespace cudabk::plugin
