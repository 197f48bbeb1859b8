// The headers of the ggml that the plugin is built for. Only structs, enumerators and inline functions of them are
// used: a host that links ggml statically exports no functions.
#pragma once

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"

namespace cudabk::plugin {

// Nodes of a graph that need not be computed this time lack a flag, in a ggml that has it (CMake looks).
inline bool is_wanted(const ggml_tensor& node) {
#ifdef CUDABK_GGML_HAS_COMPUTE_FLAG
  return (node.flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
#else
  (void)node;
  return true;
#endif
}

inline bool is_view_node(const ggml_tensor& t) {
  switch (t.op) {
    case GGML_OP_NONE:
    case GGML_OP_VIEW:
    case GGML_OP_RESHAPE:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

inline bool has_no_elements(const ggml_tensor& t) {
  return t.ne[0] <= 0 || t.ne[1] <= 0 || t.ne[2] <= 0 || t.ne[3] <= 0;
}

// Views and empty results need none.
inline bool has_work(const ggml_tensor& node) {
  return !is_view_node(node) && !has_no_elements(node) && is_wanted(node);
}

// The tensor that owns the memory; ggml keeps views flat.
inline const ggml_tensor& root_of(const ggml_tensor& t) { return t.view_src != nullptr ? *t.view_src : t; }
inline ggml_tensor& root_of(ggml_tensor& t) { return t.view_src != nullptr ? *t.view_src : t; }

}  // namespace cudabk::plugin
