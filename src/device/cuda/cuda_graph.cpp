// Executable CUDA graphs: replay, and patching. Kernels and fills are patched in the executable at once; what a library
// call becomes is known only after capturing it again, so those changes are gathered and applied by the next launch.
#include <fmt/format.h>

#include "core/log.h"
#include "device/cuda/cuda_work_graph.h"

namespace cudabk {

namespace {

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

CudaGraph::CudaGraph(CudaDevice& device) : device_(device) {}

Result<std::unique_ptr<CudaGraph>> CudaGraph::build(CudaDevice& device, std::span<const Work> works) {
  std::unique_ptr<CudaGraph> graph(new CudaGraph(device));
  graph->works_.assign(works.begin(), works.end());
  CUDABK_TRY(device.make_current());
  CUDABK_ASSIGN(std::unique_ptr<CudaWorkGraph> source, graph->build_source());
  CUDABK_TRY(graph->instantiate(std::move(source)));
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
  source_.reset();
  cudaGetLastError();
}

Result<std::unique_ptr<CudaWorkGraph>> CudaGraph::build_source() {
  for (const Work& work : works_) {
    if (std::holds_alternative<GemmCall>(work) && workspace_.ptr() == nullptr) {
      CUDABK_ASSIGN(workspace_, device_.gemm_workspace());
    }
  }
  return CudaWorkGraph::build(device_, works_, workspace_);
}

Status CudaGraph::instantiate(std::unique_ptr<CudaWorkGraph> source) {
  source_ = std::move(source);
  return cuda_check(cudaGraphInstantiate(&exec_, source_->handle(), 0),
                    fmt::format("graph of {} works", works_.size()));
}

// One node of the executable. False: only a new graph can take the change.
Result<bool> CudaGraph::patch(size_t index, const Work& work) {
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    CUDABK_ASSIGN(const CudaKernel* kernel, check_launch(*launch, device_.info()));
    if (stale_ || launch->programmatic != std::get<KernelLaunch>(works_[index]).programmatic) {
      return false;
    }
    void* args[1];
    const cudaKernelNodeParams params = kernel_node_params(*launch, *kernel, args);
    return patched(cudaGraphExecKernelNodeSetParams(exec_, source_->nodes(index)[0], &params), index);
  }
  const auto* fill = std::get_if<FillCall>(&work);
  if (stale_ || fill == nullptr || fill->bytes == 0 || std::get<FillCall>(works_[index]).bytes == 0) {
    return false;
  }
  const cudaMemsetParams params = fill_node_params(*fill);
  return patched(cudaGraphExecMemsetNodeSetParams(exec_, source_->nodes(index)[0], &params), index);
}

bool CudaGraph::patched(cudaError_t code, size_t index) const {
  if (code != cudaSuccess) {
    cudaGetLastError();
    log_debug("{}: graph node {} cannot be patched: {}", device_.info().id, index, cudaGetErrorString(code));
  }
  return code == cudaSuccess;
}

Status CudaGraph::update(size_t index, const Work& work) {
  if (index >= works_.size() || !same_kind(works_[index], work)) {
    return invalid(fmt::format("graph of {} nodes: node {} cannot become {}", works_.size(), index, kind_text(work)));
  }
  if (exec_ == nullptr) {
    return invalid("the graph is unusable after an earlier error");
  }
  CUDABK_TRY(device_.make_current());
  Result<bool> done = patch(index, work);
  if (!done.ok()) {
    destroy();
    return std::move(done).error();
  }
  works_[index] = work;
  stale_ = stale_ || !*done;
  return success();
}

// Brings the executable up to date with works_: by an update where the driver can, else instantiated anew, once.
Status CudaGraph::refresh() {
  CUDABK_ASSIGN(std::unique_ptr<CudaWorkGraph> source, build_source());
  if (source_->same_shape(*source)) {
    cudaGraphExecUpdateResultInfo info = {};
    const cudaError_t code = cudaGraphExecUpdate(exec_, source->handle(), &info);
    if (code == cudaSuccess) {
      return success();  // source_ stays: the executable's nodes are named by those that it was instantiated from
    }
    cudaGetLastError();
    log_debug("{}: graph update refused: {} ({})", device_.info().id, cudaGetErrorString(code),
              static_cast<int>(info.result));
  }
  log_debug("{}: graph of {} works instantiated anew", device_.info().id, works_.size());
  CUDABK_TRY(device_.synchronize());  // the old one may still be running
  destroy();
  return instantiate(std::move(source));
}

std::vector<void*> CudaGraph::native_nodes(size_t index) const {
  if (source_ == nullptr || index >= source_->size()) {
    return {};
  }
  const std::vector<cudaGraphNode_t>& nodes = source_->nodes(index);
  return std::vector<void*>(nodes.begin(), nodes.end());
}

Status CudaGraph::launch(cudaStream_t stream) {
  if (exec_ == nullptr) {
    return invalid("the graph is unusable after an earlier error");
  }
  if (stale_) {
    stale_ = false;
    if (Status refreshed = refresh(); !refreshed.ok()) {
      destroy();
      return refreshed;
    }
  }
  return cuda_check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch");
}

}  // namespace cudabk
