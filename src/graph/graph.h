// A graph of tensors in execution order. Builders check shapes and say what is wrong, with the values.
// Builders of ops live with their op (src/ops); this file has leaves and views.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "graph/tensor.h"

namespace cudabk {

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // A dense leaf: input, weight or constant. kInvalid if an extent is negative, ne[0] is not a multiple of
  // the block length, or the size overflows 63 bits.
  Result<Tensor*> leaf(std::string name, DType type, Shape ne, Usage usage = Usage::kCompute);

  // Views. `offset` and strides in bytes. The view must lie inside its source.
  Result<Tensor*> view(Tensor* a, Shape ne, Strides nb, int64_t offset);
  Result<Tensor*> reshape(Tensor* a, Shape ne);                 // a contiguous, same element count
  Result<Tensor*> permute(Tensor* a, std::array<int, 4> axes);  // dst.ne[axes[i]] = a.ne[i]
  Result<Tensor*> transpose(Tensor* a);                         // swaps dims 0 and 1

  // For op builders: a new dense node of an op. `op` must outlive the graph (a literal).
  Result<Tensor*> node(std::string_view op, OpParams params, DType type, Shape ne, std::vector<Tensor*> src);
  // For op builders: a node that writes into the memory of `target` (cpy, in-place ops).
  Result<Tensor*> node_into(std::string_view op, OpParams params, Tensor* target, std::vector<Tensor*> src);

  const std::vector<Tensor*>& nodes() const { return nodes_; }  // in execution order, views included, no leaves
  const std::vector<std::unique_ptr<Tensor>>& tensors() const { return tensors_; }  // all, index = Tensor::id

 private:
  Tensor* add(Tensor t, bool is_node);

  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::vector<Tensor*> nodes_;
};

}  // namespace cudabk
