// Memory for the tensors of a graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/plan.h"
#include "backend/repack.h"
#include "device/device.h"
#include "graph/graph.h"

namespace cudabk {

// Allocation size of a root tensor in its layout. Raw: quantized rows that are not a multiple of 512 elements get a
// zero-filled tail.
int64_t allocation_bytes(const Tensor& t);

struct BufferOptions {
  bool poison = false;  // fill results with NaN patterns and put guard zones behind every tensor (tests, checks)
  int64_t guard_bytes = 256;
};

// Owns device memory for every root tensor of a graph: one allocation for weights, one for everything else.
class GraphBuffers {
 public:
  static Result<GraphBuffers> allocate(Device& device, const Graph& graph, const BufferOptions& options = {});

  const Bindings& bindings() const { return bindings_; }
  DevicePtr address(const Tensor& t) const;  // view offset included
  // Bytes in the raw layout, from `offset` on; a packed tensor is repacked.
  Status upload(const Tensor& root, std::span<const std::byte> bytes, int64_t offset = 0);
  // The first bytes of the tensor, in the raw layout.
  Status download(const Tensor& root, std::span<std::byte> bytes);
  // kWrongOutput naming the tensor behind which a guard byte changed.
  Status check_guards();
  Status poison_results();  // again, between runs
  RepackStats repacked() const { return repacker_ ? repacker_->stats() : RepackStats{}; }
  int64_t weight_bytes() const { return weights_.bytes(); }
  int64_t total_bytes() const { return weights_.bytes() + compute_.bytes(); }

 private:
  Device* device_ = nullptr;
  const Graph* graph_ = nullptr;
  BufferOptions options_;
  Memory weights_, compute_;
  std::unique_ptr<Repacker> repacker_;  // where a tensor is packed
  Bindings bindings_;
};

}  // namespace cudabk
