// CUDA graphs: a chain of nodes, one per work, built with the explicit API; library calls are captured child graphs.
#include <fmt/format.h>

#include "core/log.h"
#include "device/cuda/cuda_internal.h"

namespace cudabk {

namespace {

// Parameters of a kernel node. `args` holds the pointer that they refer to while the call lasts.
cudaKernelNodeParams kernel_params(const KernelLaunch& launch, const CudaKernel& kernel, void** args) {
  args[0] = const_cast<std::byte*>(launch.args.data());  // only read
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(static_cast<const void*>(kernel.handle()));
  params.gridDim = dim3(launch.grid.x, launch.grid.y, launch.grid.z);
  params.blockDim = dim3(launch.block.x, launch.block.y, launch.block.z);
  params.sharedMemBytes = launch.shared_bytes;
  params.kernelParams = args;
  return params;
}

cudaMemsetParams fill_params(const FillCall& fill) {
  cudaMemsetParams params = {};
  params.dst = fill.dst;
  params.value = fill.value;
  params.elementSize = 1;
  params.width = static_cast<size_t>(fill.bytes);
  params.height = 1;
  return params;
}

std::string kind_text(const Work& work) {
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    return launch->kernel != nullptr ? launch->kernel->key().entry : "(no kernel)";
  }
  return std::holds_alternative<GemmCall>(work) ? "library product" : "fill";
}

// Whether the second work may take the first one's place.
bool same_kind(const Work& a, const Work& b) {
  const auto* left = std::get_if<KernelLaunch>(&a);
  const auto* right = std::get_if<KernelLaunch>(&b);
  return a.index() == b.index() && (left == nullptr || left->kernel == right->kernel);
}

}  // namespace

Result<std::unique_ptr<CudaGraph>> CudaGraph::build(CudaDevice& device, std::span<const Work> works) {
  std::unique_ptr<CudaGraph> graph(new CudaGraph(device));
  graph->works_.assign(works.begin(), works.end());
  CUDABK_TRY(graph->construct());
  return graph;
}

CudaGraph::~CudaGraph() {
  if (device_.make_current().ok()) {
    destroy();
  }
}

void CudaGraph::destroy() {
  if (exec_ != nullptr) {
    cudaGraphExecDestroy(std::exchange(exec_, nullptr));
  }
  if (graph_ != nullptr) {
    cudaGraphDestroy(std::exchange(graph_, nullptr));
  }
  for (const Node& node : nodes_) {
    if (node.captured != nullptr) {
      cudaGraphDestroy(node.captured);
    }
  }
  nodes_.clear();
  cudaGetLastError();
}

Status CudaGraph::construct() {
  CUDABK_TRY(device_.make_current());
  CUDABK_TRY(cuda_check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"));
  nodes_.resize(works_.size());
  for (size_t i = 0; i < works_.size(); ++i) {
    Status added = add_node(works_[i], nodes_[i]);
    if (added.ok() && i > 0) {
      added = add_edge(i);
    }
    if (!added.ok()) {
      return std::move(added).error().with_context(fmt::format("graph node {}", i));
    }
  }
  return cuda_check(cudaGraphInstantiate(&exec_, graph_, 0), fmt::format("graph of {} nodes", works_.size()));
}

Status CudaGraph::add_node(const Work& work, Node& node) {
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    CUDABK_ASSIGN(const CudaKernel* kernel, check_launch(*launch, device_.info()));
    void* args[1];
    const cudaKernelNodeParams params = kernel_params(*launch, *kernel, args);
    const cudaError_t code = cudaGraphAddKernelNode(&node.node, graph_, nullptr, 0, &params);
    return code == cudaSuccess ? success() : Status(cuda_error(code, launch_text(*launch)));
  }
  if (const auto* call = std::get_if<GemmCall>(&work)) {
    return add_gemm(*call, node);
  }
  const auto& fill = std::get<FillCall>(work);
  if (fill.bytes == 0) {
    return cuda_check(cudaGraphAddEmptyNode(&node.node, graph_, nullptr, 0), "cudaGraphAddEmptyNode");
  }
  const cudaMemsetParams params = fill_params(fill);
  return cuda_check(cudaGraphAddMemsetNode(&node.node, graph_, nullptr, 0, &params), "cudaGraphAddMemsetNode");
}

Status CudaGraph::add_gemm(const GemmCall& call, Node& node) {
  if (workspace_.ptr() == nullptr) {
    CUDABK_ASSIGN(workspace_, device_.gemm_workspace());
  }
  CUDABK_ASSIGN(node.captured, device_.capture_gemm(call, workspace_));
  return cuda_check(cudaGraphAddChildGraphNode(&node.node, graph_, nullptr, 0, node.captured),
                    "cudaGraphAddChildGraphNode");
}

// From the node before. A programmatic edge lets a kernel start before its predecessor has finished; it exists between
// kernels only.
Status CudaGraph::add_edge(size_t index) {
  const auto* launch = std::get_if<KernelLaunch>(&works_[index]);
  cudaGraphEdgeData edge = {};
  if (launch != nullptr && launch->programmatic && device_.has_programmatic_launch() &&
      std::holds_alternative<KernelLaunch>(works_[index - 1])) {
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
    edge.type = cudaGraphDependencyTypeProgrammatic;
  }
  return cuda_check(cudaGraphAddDependencies(graph_, &nodes_[index - 1].node, &nodes_[index].node, &edge, 1),
                    "cudaGraphAddDependencies");
}

Status CudaGraph::set_params(size_t index, const Work& work) {
  const cudaGraphNode_t node = nodes_[index].node;
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    if (launch->programmatic != std::get<KernelLaunch>(works_[index]).programmatic) {
      return internal_error("the edge between two nodes cannot be changed");
    }
    CUDABK_ASSIGN(const CudaKernel* kernel, check_launch(*launch, device_.info()));
    void* args[1];
    const cudaKernelNodeParams params = kernel_params(*launch, *kernel, args);
    return cuda_check(cudaGraphExecKernelNodeSetParams(exec_, node, &params), "cudaGraphExecKernelNodeSetParams");
  }
  if (const auto* call = std::get_if<GemmCall>(&work)) {
    return set_gemm(index, *call);
  }
  const auto& fill = std::get<FillCall>(work);
  if (fill.bytes == 0 || std::get<FillCall>(works_[index]).bytes == 0) {
    return internal_error("a fill cannot become empty, or an empty one a fill");
  }
  const cudaMemsetParams params = fill_params(fill);
  return cuda_check(cudaGraphExecMemsetNodeSetParams(exec_, node, &params), "cudaGraphExecMemsetNodeSetParams");
}

Status CudaGraph::set_gemm(size_t index, const GemmCall& call) {
  CUDABK_ASSIGN(const cudaGraph_t captured, device_.capture_gemm(call, workspace_));
  const Status set = cuda_check(cudaGraphExecChildGraphNodeSetParams(exec_, nodes_[index].node, captured),
                                "cudaGraphExecChildGraphNodeSetParams");
  cudaGraphDestroy(captured);  // the nodes that profilers know stay those of the first capture
  return set;
}

Status CudaGraph::update(size_t index, const Work& work) {
  if (index >= works_.size() || !same_kind(works_[index], work)) {
    return invalid(fmt::format("graph of {} nodes: node {} cannot become {}", works_.size(), index, kind_text(work)));
  }
  if (exec_ == nullptr) {
    return invalid("the graph is unusable after an earlier error");
  }
  CUDABK_TRY(device_.make_current());
  const Status in_place = set_params(index, work);
  works_[index] = work;
  if (in_place.ok()) {
    return success();
  }
  log_debug("{}: graph rebuilt: node {}: {}", device_.info().id, index, in_place.error().message);
  CUDABK_TRY(device_.synchronize());  // it may still be running
  destroy();
  Status rebuilt = construct();
  if (!rebuilt.ok()) {
    destroy();
  }
  return rebuilt;
}

std::vector<void*> CudaGraph::native_nodes(size_t index) const {
  if (index >= nodes_.size()) {
    return {};
  }
  if (nodes_[index].captured == nullptr) {
    return {nodes_[index].node};
  }
  // The child graph node holds its own copy of what was captured; the executable is cloned from that copy.
  cudaGraph_t embedded = nullptr;
  size_t count = 0;
  if (cudaGraphChildGraphNodeGetGraph(nodes_[index].node, &embedded) != cudaSuccess ||
      cudaGraphGetNodes(embedded, nullptr, &count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0 && cudaGraphGetNodes(embedded, nodes.data(), &count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  return std::vector<void*>(nodes.begin(), nodes.end());
}

Status CudaGraph::launch(cudaStream_t stream) {
  if (exec_ == nullptr) {
    return invalid("the graph is unusable after an earlier error");
  }
  return cuda_check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch");
}

}  // namespace cudabk
