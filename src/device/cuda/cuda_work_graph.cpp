#include "device/cuda/cuda_work_graph.h"

#include <fmt/format.h>

#include <array>
#include <unordered_set>

namespace cudabk {

namespace {

Result<std::vector<cudaGraphNode_t>> all_nodes(cudaGraph_t graph) {
  size_t count = 0;
  CUDABK_TRY(cuda_check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes"));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) {
    CUDABK_TRY(cuda_check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes"));
  }
  return nodes;
}

}  // namespace

cudaKernelNodeParams kernel_node_params(const KernelLaunch& launch, const CudaKernel& kernel, void** args) {
  args[0] = const_cast<std::byte*>(launch.args.data());  // only read
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(static_cast<const void*>(kernel.handle()));
  params.gridDim = dim3(launch.grid.x, launch.grid.y, launch.grid.z);
  params.blockDim = dim3(launch.block.x, launch.block.y, launch.block.z);
  params.sharedMemBytes = launch.shared_bytes;
  params.kernelParams = args;
  return params;
}

cudaMemsetParams fill_node_params(const FillCall& fill) {
  cudaMemsetParams params = {};
  params.dst = fill.dst;
  params.value = fill.value;
  params.elementSize = 1;
  params.width = static_cast<size_t>(fill.bytes);
  params.height = 1;
  return params;
}

Result<std::unique_ptr<CudaWorkGraph>> CudaWorkGraph::build(CudaDevice& device, std::span<const Work> works,
                                                            const Memory& workspace) {
  std::unique_ptr<CudaWorkGraph> built(new CudaWorkGraph());
  cudaGraph_t graph = nullptr;
  CUDABK_TRY(cuda_check(cudaGraphCreate(&graph, 0), "cudaGraphCreate"));
  built->graph_.reset(graph);
  for (size_t i = 0; i < works.size(); ++i) {
    const bool after_kernel = i > 0 && std::holds_alternative<KernelLaunch>(works[i - 1]);
    built->nodes_.emplace_back();
    if (Status added = built->add(device, works[i], after_kernel, workspace); !added.ok()) {
      return std::move(added).error().with_context(fmt::format("graph node {}", i));
    }
  }
  CUDABK_TRY(built->describe());
  return built;
}

Status CudaWorkGraph::add(CudaDevice& device, const Work& work, bool after_kernel, const Memory& workspace) {
  if (const auto* call = std::get_if<GemmCall>(&work)) {
    return add_gemm(device, *call, workspace);
  }
  return add_own(device, work, after_kernel);
}

// A kernel or a fill, and its edges. A programmatic edge lets a kernel start before its predecessor has finished; it
// exists between kernels only, and not after those of a library, whose edges are whole dependencies.
Status CudaWorkGraph::add_own(CudaDevice& device, const Work& work, bool after_kernel) {
  cudaGraphNode_t node = nullptr;
  cudaGraphEdgeData edge = {};
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    CUDABK_ASSIGN(const CudaKernel* kernel, check_launch(*launch, device.info()));
    void* args[1];
    const cudaKernelNodeParams params = kernel_node_params(*launch, *kernel, args);
    if (const cudaError_t code = cudaGraphAddKernelNode(&node, handle(), nullptr, 0, &params); code != cudaSuccess) {
      return cuda_error(code, launch_text(*launch));
    }
    if (launch->programmatic && after_kernel && device.has_programmatic_launch()) {
      edge.from_port = cudaGraphKernelNodePortProgrammatic;
      edge.type = cudaGraphDependencyTypeProgrammatic;
    }
  } else if (const auto& fill = std::get<FillCall>(work); fill.bytes == 0) {
    CUDABK_TRY(cuda_check(cudaGraphAddEmptyNode(&node, handle(), nullptr, 0), "cudaGraphAddEmptyNode"));
  } else {
    const cudaMemsetParams params = fill_node_params(fill);
    CUDABK_TRY(cuda_check(cudaGraphAddMemsetNode(&node, handle(), nullptr, 0, &params), "cudaGraphAddMemsetNode"));
  }
  for (const cudaGraphNode_t before : last_) {
    CUDABK_TRY(cuda_check(cudaGraphAddDependencies(handle(), &before, &node, &edge, 1), "cudaGraphAddDependencies"));
  }
  nodes_.back() = {node};
  last_ = {node};
  return success();
}

Status CudaWorkGraph::add_gemm(CudaDevice& device, const GemmCall& call, const Memory& workspace) {
  CUDABK_ASSIGN(const std::vector<cudaGraphNode_t> before, all_nodes(handle()));
  bool lost = false;
  Status captured = device.capture_gemm(call, workspace, handle(), last_, lost);
  if (lost) {
    (void)graph_.release();  // invalidated with the capture; destroying it again would be an error
  }
  CUDABK_TRY(std::move(captured));
  CUDABK_ASSIGN(const std::vector<cudaGraphNode_t> after, all_nodes(handle()));
  const std::unordered_set<cudaGraphNode_t> known(before.begin(), before.end());
  for (const cudaGraphNode_t node : after) {
    if (!known.contains(node)) {
      nodes_.back().push_back(node);
    }
  }
  return success();
}

Status CudaWorkGraph::describe() {
  constexpr size_t kMostEdges = 16;  // into one node; what a library's product needs lies far below
  for (const auto& nodes : nodes_) {
    shape_.push_back(static_cast<int>(nodes.size()));
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
      CUDABK_TRY(cuda_check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType"));
      std::array<cudaGraphNode_t, kMostEdges> from = {};
      std::array<cudaGraphEdgeData, kMostEdges> edges = {};
      size_t count = kMostEdges;
      CUDABK_TRY(cuda_check(cudaGraphNodeGetDependencies(node, from.data(), edges.data(), &count),
                            "cudaGraphNodeGetDependencies"));
      shape_.push_back(type);
      shape_.push_back(static_cast<int>(count));
      for (size_t i = 0; i < std::min(count, kMostEdges); ++i) {
        shape_.push_back(edges[i].type | edges[i].from_port << 8 | edges[i].to_port << 16);
      }
    }
  }
  return success();
}

}  // namespace cudabk
