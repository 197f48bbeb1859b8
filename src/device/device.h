// What a device can do, the same for a CUDA GPU and for the emulated one. Upper layers see only this file.
// Nothing here blocks unless it says so. All sizes are bytes. A Device is used by one host thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"
#include "formats/dtypes.h"

namespace cudabk {

using DevicePtr = std::byte*;  // an address in device memory; only the emulated device may dereference it

struct DeviceInfo {
  std::string id;    // "cuda:0", "host:0"
  std::string name;  // "NVIDIA H200", "emulated sm_80"
  std::string arch;  // "sm_90a": the architecture kernels are compiled for
  int cc = 0;        // 90: major * 10 + minor
  int sm_count = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;  // total
  int max_shared_bytes = 0;  // per block, opt-in limit
  int max_threads_per_block = 1024;
  int driver_version = 0;   // 13000; 0 on the emulated device
  std::string driver_text;  // "580.159.04"; empty on the emulated device
  std::string uuid;         // empty on the emulated device
  bool emulated = false;

  // The cc that kernels see as kArch / 10, for sizes that depend on it: the emulated device's kernels are compiled
  // once, as for sm_80, whatever it poses as.
  int code_cc() const { return emulated ? 80 : cc; }
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// One kernel variant: the header under kernels/ that holds the template, and the template-id as C++ text,
// e.g. {"mmvq/mmvq.h", "mmvq<DType::q4_K, 1, 4>"}. The text is the variant's identity everywhere.
struct KernelKey {
  std::string header;
  std::string entry;
  uint32_t args_bytes = 0;  // sizeof the argument struct on the host, checked against the device's; 0: not checked
  auto operator<=>(const KernelKey&) const = default;
};

// What the compiler said (zeros on the emulated device, except the hash).
struct KernelReport {
  int registers = 0;
  int static_shared_bytes = 0;
  int local_bytes = 0;  // stack frame per thread
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  double compile_ms = 0;  // 0 when it came from the cache
  bool from_cache = false;
  std::string code_hash;  // "sha256:..." over the machine code (emulated: over the kernel's sources)
};

// A loaded variant; owned by the Device, valid for its lifetime.
class Kernel {
 public:
  virtual ~Kernel() = default;
  const KernelKey& key() const { return key_; }
  const KernelReport& report() const { return report_; }

 protected:
  KernelKey key_;
  KernelReport report_;
};

struct KernelLaunch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;    // dynamic shared memory
  bool programmatic = false;    // may start before its predecessor has finished (PDL), where the device has it
  std::vector<std::byte> args;  // the kernel's one POD argument struct
};

// C = A^T * B per batch entry, column-major as cuBLAS: A is [k, m] with lda, B is [k, n] with ldb, C [m, n] with
// ldc (leading dimensions and strides in elements). f32 accumulation always.
struct GemmCall {
  DType type_ab = DType::f32;  // f32, f16, bf16
  DType type_c = DType::f32;   // f32, or type_ab
  bool allow_tf32 = false;     // only with f32 operands
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // Either the first matrices (strided batches) ...
  DevicePtr a = nullptr, b = nullptr, c = nullptr;
  // ... or, when pointer_arrays is set, a, b, c address arrays of `batch` device pointers in device memory.
  bool pointer_arrays = false;
  // 0: the library's own choice. From 1, for one product only: the number of a suggestion of cuBLASLt, best guess
  // first; the last one where there are fewer, 0 where there is none. The emulated device has one algorithm.
  int algo = 0;
};

struct FillCall {
  DevicePtr dst = nullptr;
  uint8_t value = 0;
  int64_t bytes = 0;
};

using Work = std::variant<KernelLaunch, GemmCall, FillCall>;

class Device;

// Device memory, freed when the object dies. Move-only.
class Memory {
 public:
  Memory() = default;
  Memory(Device* device, DevicePtr ptr, int64_t bytes) : device_(device), ptr_(ptr), bytes_(bytes) {}
  Memory(Memory&& o) noexcept
      : device_(std::exchange(o.device_, nullptr)), ptr_(std::exchange(o.ptr_, nullptr)), bytes_(o.bytes_) {}
  Memory& operator=(Memory&& o) noexcept {
    std::swap(device_, o.device_);
    std::swap(ptr_, o.ptr_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  Memory(const Memory&) = delete;
  ~Memory();

  DevicePtr ptr() const { return ptr_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  DevicePtr ptr_ = nullptr;
  int64_t bytes_ = 0;
};

// Host memory that copies reach without staging, where the device has such memory. Must die before the Device.
using PinnedMemory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

// A point in a stream, for timing and for order. elapsed_ns blocks until both events happened.
class Event {
 public:
  virtual ~Event() = default;
  virtual Result<double> elapsed_ns(const Event& earlier) const = 0;
  // Blocks until the work before the last record() is done; at once when there was none. Any thread may call it.
  virtual Status synchronize() const = 0;
};

// A list of work built once and replayed with one call (a CUDA graph).
class ExecGraph {
 public:
  virtual ~ExecGraph() = default;
  // Replaces the work at `index` by one of the same kind (same kernel, other arguments or grid). What cannot be
  // patched in place is applied by the next launch, re-instantiating at most once; an error leaves the graph unusable.
  virtual Status update(size_t index, const Work& work) = 0;
  // CUDA: the cudaGraphNode_t handles (as void*) that work `index` became, before instantiation; a library call may
  // have several. Valid until a launch that follows update(), which may replace them. Empty on the emulated device.
  virtual std::vector<void*> native_nodes(size_t index) const = 0;
};

// Work in order. One stream is used by one thread; synchronize() may be called by any.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status run(const Work& work) = 0;
  virtual Status run(ExecGraph& graph) = 0;
  virtual Status record(Event& event) = 0;
  // Later work of this stream starts after what the event marks, in whichever stream that is.
  virtual Status wait(const Event& event) = 0;
  // Copies in order with the other work. Host memory stays valid until they are done.
  virtual Status upload(DevicePtr dst, const void* src, int64_t bytes) = 0;
  virtual Status download(void* dst, DevicePtr src, int64_t bytes) = 0;
  virtual Status copy(DevicePtr dst, DevicePtr src, int64_t bytes) = 0;  // within the device; ranges do not overlap
  virtual Status synchronize() = 0;                                      // blocks; reports errors of earlier work
  virtual void* native() const = 0;                                      // cudaStream_t, or nullptr
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Loads a variant: from this process, the on-disk cache, or by compiling (blocks). The emulated device knows only
  // listed variants; the error then names the variant and the list file. kUnfit without NVRTC.
  virtual Result<const Kernel*> kernel(const KernelKey& key) = 0;
  // The same for many at once, compiled in parallel. The first error is returned after all were tried.
  virtual Status prepare(std::span<const KernelKey> keys) = 0;

  // 256-byte aligned. kUnfit with the size asked for and what is free when memory is short.
  virtual Result<Memory> allocate(int64_t bytes) = 0;
  // 256-byte aligned, for transfers. kUnfit when it cannot be had.
  virtual Result<PinnedMemory> allocate_pinned(int64_t bytes) = 0;
  virtual Result<std::pair<int64_t, int64_t>> memory_free_total() = 0;
  // Blocking copies between host and device memory, ordered after all earlier work of the device.
  virtual Status upload(DevicePtr dst, const void* src, int64_t bytes) = 0;
  virtual Status download(void* dst, DevicePtr src, int64_t bytes) = 0;
  virtual Status fill(DevicePtr dst, uint8_t value, int64_t bytes) = 0;

  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  // Each entry of `works` runs after the one before it.
  virtual Result<std::unique_ptr<ExecGraph>> build_graph(std::span<const Work> works) = 0;
  virtual Status synchronize() = 0;
  // Yes, or why GemmCalls cannot run here (cuBLAS missing). Loads the library at the first call.
  virtual Status gemm_available() = 0;

 protected:
  friend class Memory;
  virtual void release(DevicePtr ptr, int64_t bytes) = 0;
};

inline Memory::~Memory() {
  if (ptr_ != nullptr) {
    device_->release(ptr_, bytes_);
  }
}

// Options of the device factory; src/cli fills them from flags and environment.
struct DeviceOptions {
  std::string cache_dir;  // cubin cache; empty disables it
  int64_t cache_limit_bytes = 1LL << 30;
  std::string toolkit_dir;            // CUDA_HOME or CUDA_PATH: where NVRTC, cuBLAS are looked for first; may be empty
  uint64_t shuffle_threads_seed = 0;  // emulated device: 0 = ascending order
  enum class ThreadOrder { kAscending, kDescending, kShuffled } thread_order = ThreadOrder::kAscending;
  // Emulated device: once this is true, blocks that have not begun are not run, and the work that was under way and all
  // later work fails with kInterrupted. Its results are then partly written. May be null; must outlive the device.
  const std::atomic<bool>* interrupted = nullptr;
};

// Opens "cuda:0", "host", "host:1", "host:2@sm_90a". "auto" is cuda:0 where there is a GPU, else host:0.
// kInvalid for a malformed name, kUnfit where the device does not exist (with the reason).
Result<std::unique_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options);
// What a GPU of this architecture can do, without one: for tables and recorded results. kInvalid for an architecture
// that is not known here, with the list.
Result<DeviceInfo> describe_architecture(std::string_view arch);
// Number of CUDA devices, or why there are none. Never fails hard.
Result<int> cuda_device_count();

}  // namespace cudabk
