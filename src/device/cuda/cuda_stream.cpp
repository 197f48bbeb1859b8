// Streams and events.
#include <fmt/format.h>

#include "device/cuda/cuda_internal.h"

namespace cudabk {

Result<double> CudaEvent::elapsed_ns(const Event& earlier) const {
  const auto* first = dynamic_cast<const CudaEvent*>(&earlier);
  if (first == nullptr) {
    return invalid("elapsed time: the earlier event is not of a CUDA device");
  }
  CUDABK_TRY(cuda_check(cudaEventSynchronize(first->handle_), "waiting for an event"));
  CUDABK_TRY(cuda_check(cudaEventSynchronize(handle_), "waiting for an event"));
  float milliseconds = 0;
  CUDABK_TRY(cuda_check(cudaEventElapsedTime(&milliseconds, first->handle_, handle_), "time between two events"));
  return double{milliseconds} * 1e6;
}

Status CudaEvent::synchronize() const { return cuda_check(cudaEventSynchronize(handle_), "waiting for an event"); }

CudaStream::~CudaStream() {
  if (device_.make_current().ok()) {
    cudaStreamSynchronize(handle_);  // before its workspace is freed
    cudaStreamDestroy(handle_);
    cudaGetLastError();
  }
}

Status CudaStream::launch(const KernelLaunch& launch) {
  CUDABK_ASSIGN(const CudaKernel* kernel, check_launch(launch, device_.info()));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.grid.x, launch.grid.y, launch.grid.z);
  config.blockDim = dim3(launch.block.x, launch.block.y, launch.block.z);
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = handle_;
  cudaLaunchAttribute overlap = {};
  if (launch.programmatic && device_.has_programmatic_launch()) {
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = 1;
  }
  void* args[] = {const_cast<std::byte*>(launch.args.data())};  // only read
  const cudaError_t code = cudaLaunchKernelExC(&config, kernel->handle(), args);
  return code == cudaSuccess ? success() : Status(cuda_error(code, launch_text(launch)));
}

Status CudaStream::gemm(const GemmCall& call) {
  if (workspace_.ptr() == nullptr) {
    CUDABK_ASSIGN(workspace_, device_.gemm_workspace());
  }
  return device_.enqueue_gemm(call, handle_, workspace_);
}

Status CudaStream::run(const Work& work) {
  CUDABK_TRY(device_.make_current());
  if (const auto* kernel = std::get_if<KernelLaunch>(&work)) {
    return launch(*kernel);
  }
  if (const auto* call = std::get_if<GemmCall>(&work)) {
    return gemm(*call);
  }
  const auto& fill = std::get<FillCall>(work);
  if (fill.bytes == 0) {
    return success();
  }
  return cuda_check(cudaMemsetAsync(fill.dst, fill.value, static_cast<size_t>(fill.bytes), handle_), "cudaMemsetAsync");
}

Status CudaStream::run(ExecGraph& graph) {
  auto* built = dynamic_cast<CudaGraph*>(&graph);
  if (built == nullptr) {
    return invalid("the graph was not built by a CUDA device");
  }
  CUDABK_TRY(device_.make_current());
  return built->launch(handle_);
}

Status CudaStream::record(Event& event) {
  auto* own = dynamic_cast<CudaEvent*>(&event);
  if (own == nullptr) {
    return invalid("the event is not of a CUDA device");
  }
  CUDABK_TRY(device_.make_current());
  return cuda_check(cudaEventRecord(own->handle(), handle_), "cudaEventRecord");
}

Status CudaStream::wait(const Event& event) {
  const auto* own = dynamic_cast<const CudaEvent*>(&event);
  if (own == nullptr) {
    return invalid("the event is not of a CUDA device");
  }
  CUDABK_TRY(device_.make_current());
  return cuda_check(cudaStreamWaitEvent(handle_, own->handle(), 0), "cudaStreamWaitEvent");
}

Status CudaStream::transfer(void* dst, const void* src, int64_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) {
    return success();
  }
  CUDABK_TRY(device_.make_current());
  return cuda_check(cudaMemcpyAsync(dst, src, static_cast<size_t>(bytes), kind, handle_), "cudaMemcpyAsync");
}

Status CudaStream::upload(DevicePtr dst, const void* src, int64_t bytes) {
  return transfer(dst, src, bytes, cudaMemcpyHostToDevice);
}

Status CudaStream::download(void* dst, DevicePtr src, int64_t bytes) {
  return transfer(dst, src, bytes, cudaMemcpyDeviceToHost);
}

Status CudaStream::copy(DevicePtr dst, DevicePtr src, int64_t bytes) {
  return transfer(dst, src, bytes, cudaMemcpyDeviceToDevice);
}

Status CudaStream::synchronize() {
  CUDABK_TRY(device_.make_current());
  return cuda_check(cudaStreamSynchronize(handle_), "earlier work of the stream");
}

}  // namespace cudabk
