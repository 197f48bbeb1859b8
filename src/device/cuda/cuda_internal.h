// The classes behind cuda_device.h, shared by the files of this folder.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/compile.h"
#include "device/cuda/cublas.h"
#include "device/cuda/cublas_lt.h"
#include "device/cuda/cuda_error.h"
#include "device/device.h"

namespace cudabk {

// Everything known about GPU `index`.
Result<DeviceInfo> read_cuda_device_info(int index);

// A loaded variant: the library that cudart made of its cubin, and the kernel in it.
class CudaKernel final : public Kernel {
 public:
  // Loads for every device of the process.
  static Result<std::unique_ptr<CudaKernel>> load(const KernelKey& key, const CompiledKernel& compiled);
  ~CudaKernel() override;

  cudaKernel_t handle() const { return handle_; }
  // Makes launches with this much dynamic shared memory legal on the current device.
  Status allow_shared(uint32_t bytes, const DeviceInfo& info) const;

 private:
  CudaKernel() = default;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t handle_ = nullptr;
  // hardware: more than 48 KiB of dynamic shared memory must be asked for, per kernel.
  mutable uint32_t allowed_shared_ = 48 * 1024;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaEvent_t handle) : handle_(handle) {}
  ~CudaEvent() override { cudaEventDestroy(handle_); }
  Result<double> elapsed_ns(const Event& earlier) const override;
  Status synchronize() const override;
  cudaEvent_t handle() const { return handle_; }

 private:
  cudaEvent_t handle_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, DeviceInfo info, const DeviceOptions& options);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<const Kernel*> kernel(const KernelKey& key) override;
  Status prepare(std::span<const KernelKey> keys) override;
  Result<Memory> allocate(int64_t bytes) override;
  Result<PinnedMemory> allocate_pinned(int64_t bytes) override;
  Result<std::pair<int64_t, int64_t>> memory_free_total() override;
  Status upload(DevicePtr dst, const void* src, int64_t bytes) override;
  Status download(void* dst, DevicePtr src, int64_t bytes) override;
  Status fill(DevicePtr dst, uint8_t value, int64_t bytes) override;
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::unique_ptr<ExecGraph>> build_graph(std::span<const Work> works) override;
  Status synchronize() override;
  Status gemm_available() override;

  // For streams and graphs of this device.
  Status make_current() const;  // CUDA calls of this thread then mean this device
  bool has_programmatic_launch() const { return info_.cc >= 90; }
  // Memory for cuBLAS; each stream and each graph has its own, since they may run at the same time.
  Result<Memory> gemm_workspace();
  Status enqueue_gemm(const GemmCall& call, cudaStream_t stream, const Memory& workspace);
  // Adds what a library call enqueues to `graph`, after the nodes `last`, which becomes what its successor waits for.
  // After an error `lost` says whether the graph is gone.
  Status capture_gemm(const GemmCall& call, const Memory& workspace, cudaGraph_t graph,
                      std::vector<cudaGraphNode_t>& last, bool& lost);

 protected:
  void release(DevicePtr ptr, int64_t bytes) override;

 private:
  Result<const Kernel*> load(const KernelKey& key, const Result<CompiledKernel>& compiled);
  Status run_gemm(const GemmCall& call, cudaStream_t stream, const Memory& workspace);

  int index_;
  DeviceInfo info_;
  std::string toolkit_dir_;
  KernelCompiler compiler_;
  std::map<KernelKey, std::unique_ptr<CudaKernel>> kernels_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<CublasLt> cublas_lt_;  // opened at the first call that names an algorithm
  cudaStream_t capture_stream_ = nullptr;
};

// Work in order on one stream.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, cudaStream_t handle) : device_(device), handle_(handle) {}
  ~CudaStream() override;
  Status run(const Work& work) override;
  Status run(ExecGraph& graph) override;
  Status record(Event& event) override;
  Status wait(const Event& event) override;
  Status upload(DevicePtr dst, const void* src, int64_t bytes) override;
  Status download(void* dst, DevicePtr src, int64_t bytes) override;
  Status copy(DevicePtr dst, DevicePtr src, int64_t bytes) override;
  Status synchronize() override;
  void* native() const override { return handle_; }

 private:
  Status transfer(void* dst, const void* src, int64_t bytes, cudaMemcpyKind kind);
  Status launch(const KernelLaunch& launch);
  Status gemm(const GemmCall& call);

  CudaDevice& device_;
  cudaStream_t handle_;
  Memory workspace_;  // cuBLAS, allocated at the first library call
};

// Checks what the driver would answer with a vague error, and opts in to the shared memory needed.
Result<const CudaKernel*> check_launch(const KernelLaunch& launch, const DeviceInfo& info);
// "mmvq<...> grid 4096x1x1 block 128x1x1 shared 0": what launch errors start with.
std::string launch_text(const KernelLaunch& launch);

class CudaWorkGraph;

// A chain of works as an executable graph (cuda_work_graph.h: how it is built).
class CudaGraph final : public ExecGraph {
 public:
  static Result<std::unique_ptr<CudaGraph>> build(CudaDevice& device, std::span<const Work> works);
  ~CudaGraph() override;
  Status update(size_t index, const Work& work) override;
  std::vector<void*> native_nodes(size_t index) const override;
  Status launch(cudaStream_t stream);

 private:
  explicit CudaGraph(CudaDevice& device);
  Result<std::unique_ptr<CudaWorkGraph>> build_source();  // from works_
  Status instantiate(std::unique_ptr<CudaWorkGraph> source);
  Status refresh();
  void destroy();
  Result<bool> patch(size_t index, const Work& work);
  bool patched(cudaError_t code, size_t index) const;

  CudaDevice& device_;
  std::vector<Work> works_;
  Memory workspace_;                       // cuBLAS
  std::unique_ptr<CudaWorkGraph> source_;  // what exec_ was instantiated from
  cudaGraphExec_t exec_ = nullptr;
  bool stale_ = false;  // exec_ lacks changes that works_ has
};

}  // namespace cudabk
