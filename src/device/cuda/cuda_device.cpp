#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "core/units.h"
#include "device/cuda/cuda_internal.h"

namespace cudabk {

namespace {

// cuBLAS: what its documentation recommends per architecture.
constexpr int64_t kWorkspaceBytesSm90 = 32LL << 20;
constexpr int64_t kWorkspaceBytes = 4LL << 20;

// The nodes that work enqueued next on a capturing stream would wait for.
Status read_capture_end(cudaStream_t stream, std::vector<cudaGraphNode_t>& last) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;  // asked for since the query fails where they are not plain
  size_t count = 0;
  CUDABK_TRY(cuda_check(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &count),
                        "cudaStreamGetCaptureInfo"));
  if (status != cudaStreamCaptureStatusActive) {
    return internal_error("the library call ended or broke its capture");
  }
  last.assign(nodes, nodes + count);
  return success();
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int index, const DeviceOptions& options) {
  CUDABK_ASSIGN(const int count, count_cuda_devices());
  if (index < 0 || index >= count) {
    return unfit(fmt::format("no device cuda:{}: there {} cuda:0{}", index, count == 1 ? "is only" : "are",
                             count == 1 ? std::string() : fmt::format(" to cuda:{}", count - 1)));
  }
  CUDABK_ASSIGN(DeviceInfo info, read_cuda_device_info(index));
  if (info.cc < 75) {
    return unfit(fmt::format("cuda:{} ({}, sm_{}): kernels need sm_75 or newer", index, info.name, info.cc));
  }
  return std::unique_ptr<Device>(new CudaDevice(index, std::move(info), options));
}

CudaDevice::CudaDevice(int index, DeviceInfo info, const DeviceOptions& options)
    : index_(index),
      info_(std::move(info)),
      toolkit_dir_(options.toolkit_dir),
      compiler_({options.cache_dir, options.cache_limit_bytes, options.toolkit_dir}) {}

CudaDevice::~CudaDevice() {
  if (make_current().ok()) {
    cublas_lt_.reset();
    cublas_.reset();
    if (capture_stream_ != nullptr) {
      cudaStreamDestroy(capture_stream_);
    }
    kernels_.clear();
    cudaGetLastError();
  }
}

Status CudaDevice::make_current() const { return cuda_check(cudaSetDevice(index_), info_.id); }

Result<const Kernel*> CudaDevice::load(const KernelKey& key, const Result<CompiledKernel>& compiled) {
  if (!compiled.ok()) {
    return compiled.error();
  }
  CUDABK_TRY(make_current());
  CUDABK_ASSIGN(std::unique_ptr<CudaKernel> kernel, CudaKernel::load(key, *compiled));
  return kernels_.insert_or_assign(key, std::move(kernel)).first->second.get();
}

Result<const Kernel*> CudaDevice::kernel(const KernelKey& key) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) {
    return found->second.get();
  }
  return load(key, compiler_.compile(key, info_.arch));
}

Status CudaDevice::prepare(std::span<const KernelKey> keys) {
  std::set<KernelKey> missing(keys.begin(), keys.end());
  std::erase_if(missing, [this](const KernelKey& key) { return kernels_.contains(key); });
  const std::vector<KernelKey> list(missing.begin(), missing.end());
  std::vector<std::optional<Result<CompiledKernel>>> compiled(list.size());

  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < list.size(); i = next++) {
      compiled[i] = compiler_.compile(list[i], info_.arch);
    }
  };
  const size_t threads = std::min<size_t>(list.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) {
    others.emplace_back(work);
  }
  work();
  for (std::thread& thread : others) {
    thread.join();
  }

  Status first;
  for (size_t i = 0; i < list.size(); ++i) {
    Result<const Kernel*> loaded = load(list[i], *compiled[i]);
    if (!loaded.ok() && first.ok()) {
      first = std::move(loaded).error();
    }
  }
  return first;
}

Result<Memory> CudaDevice::allocate(int64_t bytes) {
  if (bytes < 0) {
    return invalid(fmt::format("{}: cannot allocate {} bytes", info_.id, bytes));
  }
  if (bytes == 0) {
    return Memory();
  }
  CUDABK_TRY(make_current());
  void* ptr = nullptr;
  const cudaError_t code = cudaMalloc(&ptr, static_cast<size_t>(bytes));
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    CUDABK_ASSIGN(const auto free_total, memory_free_total());
    return unfit(fmt::format(
        "{}: out of device memory: {} asked for, {} free of {}", info_.id, format_bytes(static_cast<double>(bytes)),
        format_bytes(static_cast<double>(free_total.first)), format_bytes(static_cast<double>(free_total.second))));
  }
  CUDABK_TRY(cuda_check(code, "cudaMalloc"));
  return Memory(this, static_cast<DevicePtr>(ptr), bytes);
}

Result<PinnedMemory> CudaDevice::allocate_pinned(int64_t bytes) {
  CUDABK_TRY(make_current());
  void* ptr = nullptr;
  if (const cudaError_t code =
          cudaHostAlloc(&ptr, static_cast<size_t>(std::max<int64_t>(bytes, 1)), cudaHostAllocPortable);
      code != cudaSuccess) {
    cudaGetLastError();
    return unfit(fmt::format("{}: no pinned host memory of {}: {}", info_.id, format_bytes(static_cast<double>(bytes)),
                             cudaGetErrorString(code)));
  }
  return PinnedMemory(static_cast<std::byte*>(ptr), [](std::byte* p) {
    cudaFreeHost(p);
    cudaGetLastError();
  });
}

void CudaDevice::release(DevicePtr ptr, int64_t) {
  if (make_current().ok()) {
    cudaFree(ptr);
    cudaGetLastError();
  }
}

Result<std::pair<int64_t, int64_t>> CudaDevice::memory_free_total() {
  CUDABK_TRY(make_current());
  size_t free = 0, total = 0;
  CUDABK_TRY(cuda_check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  return std::pair<int64_t, int64_t>(static_cast<int64_t>(free), static_cast<int64_t>(total));
}

// The streams of this device do not wait for the default stream, nor it for them: hence the two synchronisations.
Status CudaDevice::upload(DevicePtr dst, const void* src, int64_t bytes) {
  CUDABK_TRY(synchronize());
  CUDABK_TRY(cuda_check(cudaMemcpy(dst, src, static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
                        fmt::format("copy of {} bytes to {}", bytes, info_.id)));
  return synchronize();
}

Status CudaDevice::download(void* dst, DevicePtr src, int64_t bytes) {
  CUDABK_TRY(synchronize());
  return cuda_check(cudaMemcpy(dst, src, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost),
                    fmt::format("copy of {} bytes from {}", bytes, info_.id));
}

Status CudaDevice::fill(DevicePtr dst, uint8_t value, int64_t bytes) {
  CUDABK_TRY(synchronize());
  CUDABK_TRY(cuda_check(cudaMemset(dst, value, static_cast<size_t>(bytes)), "cudaMemset"));
  return synchronize();
}

Result<std::unique_ptr<Stream>> CudaDevice::create_stream() {
  CUDABK_TRY(make_current());
  cudaStream_t handle = nullptr;
  CUDABK_TRY(cuda_check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate"));
  return std::unique_ptr<Stream>(new CudaStream(*this, handle));
}

Result<std::unique_ptr<Event>> CudaDevice::create_event() {
  CUDABK_TRY(make_current());
  cudaEvent_t handle = nullptr;
  CUDABK_TRY(cuda_check(cudaEventCreate(&handle), "cudaEventCreate"));
  return std::unique_ptr<Event>(new CudaEvent(handle));
}

Result<std::unique_ptr<ExecGraph>> CudaDevice::build_graph(std::span<const Work> works) {
  CUDABK_ASSIGN(std::unique_ptr<CudaGraph> graph, CudaGraph::build(*this, works));
  return std::unique_ptr<ExecGraph>(std::move(graph));
}

Status CudaDevice::synchronize() {
  CUDABK_TRY(make_current());
  return cuda_check(cudaDeviceSynchronize(), fmt::format("earlier work of {}", info_.id));
}

Status CudaDevice::gemm_available() {
  if (cublas_ == nullptr) {
    CUDABK_TRY(make_current());
    CUDABK_ASSIGN(cublas_, Cublas::open(toolkit_dir_));
  }
  return success();
}

Result<Memory> CudaDevice::gemm_workspace() { return allocate(info_.cc >= 90 ? kWorkspaceBytesSm90 : kWorkspaceBytes); }

Status CudaDevice::run_gemm(const GemmCall& call, cudaStream_t stream, const Memory& workspace) {
  if (call.algo == 0) {
    return cublas_->run(call, stream, workspace);
  }
  if (cublas_lt_ == nullptr) {
    CUDABK_ASSIGN(cublas_lt_, CublasLt::open(toolkit_dir_));
  }
  Status done = cublas_lt_->run(call, stream, workspace);
  return done.ok() || done.error().kind != ErrorKind::kUnfit ? done : cublas_->run(call, stream, workspace);
}

Status CudaDevice::enqueue_gemm(const GemmCall& call, cudaStream_t stream, const Memory& workspace) {
  CUDABK_TRY(gemm_available());
  return run_gemm(call, stream, workspace);
}

Status CudaDevice::capture_gemm(const GemmCall& call, const Memory& workspace, cudaGraph_t graph,
                                std::vector<cudaGraphNode_t>& last, bool& lost) {
  lost = false;
  CUDABK_TRY(gemm_available());
  if (capture_stream_ == nullptr) {
    CUDABK_TRY(cuda_check(cudaStreamCreateWithFlags(&capture_stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
  }
  // Relaxed: the library may load its code while this is captured.
  CUDABK_TRY(cuda_check(cudaStreamBeginCaptureToGraph(capture_stream_, graph, last.data(), nullptr, last.size(),
                                                      cudaStreamCaptureModeRelaxed),
                        "cudaStreamBeginCaptureToGraph"));
  Status enqueued = run_gemm(call, capture_stream_, workspace);
  if (enqueued.ok()) {
    enqueued = read_capture_end(capture_stream_, last);
  }
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(capture_stream_, &captured);
  lost = ended != cudaSuccess;
  if (!enqueued.ok()) {
    cudaGetLastError();
    return enqueued;
  }
  return cuda_check(ended, "cudaStreamEndCapture");
}

}  // namespace cudabk
