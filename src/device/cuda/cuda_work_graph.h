// Works as a CUDA graph that is not executable yet.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/result.h"
#include "device/cuda/cuda_internal.h"

namespace cudabk {

// Parameters of a kernel node. `args` holds the pointer that they refer to while the call lasts.
cudaKernelNodeParams kernel_node_params(const KernelLaunch& launch, const CudaKernel& kernel, void** args);
cudaMemsetParams fill_node_params(const FillCall& fill);

// A chain: each work's nodes follow those of the work before. Library calls are captured into the graph itself, not
// into child graphs: the nodes of an instantiated child graph are unknown to profilers.
class CudaWorkGraph {
 public:
  // `workspace` is what library calls use; it may be empty when there are none.
  static Result<std::unique_ptr<CudaWorkGraph>> build(CudaDevice& device, std::span<const Work> works,
                                                      const Memory& workspace);

  cudaGraph_t handle() const { return graph_.get(); }
  // Of the work at `index`; none, one, or several for a library call.
  const std::vector<cudaGraphNode_t>& nodes(size_t index) const { return nodes_[index]; }
  size_t size() const { return nodes_.size(); }
  // Whether nodes and edges are of the same kinds, so that an executable made of one could be updated to the other.
  bool same_shape(const CudaWorkGraph& other) const { return shape_ == other.shape_; }

 private:
  CudaWorkGraph() = default;
  Status add(CudaDevice& device, const Work& work, bool after_kernel, const Memory& workspace);
  Status add_own(CudaDevice& device, const Work& work, bool after_kernel);
  Status add_gemm(CudaDevice& device, const GemmCall& call, const Memory& workspace);
  Status describe();  // fills shape_

  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy> graph_;
  std::vector<std::vector<cudaGraphNode_t>> nodes_;  // per work
  std::vector<cudaGraphNode_t> last_;                // what the next work waits for
  std::vector<int> shape_;                           // per node its type and the kinds of the edges that lead to it
};

}  // namespace cudabk
