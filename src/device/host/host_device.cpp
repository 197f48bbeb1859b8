#include "device/host/host_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <optional>

#include "core/hash.h"
#include "device/host/host_arch.h"
#include "device/host/host_gemm.h"
#include "device/host/host_memory.h"
#include "kernel_text.h"
#include "platform/host_instances.h"
#include "platform/host_launch.h"

namespace cudabk {

namespace {

constexpr uint32_t kMaxGridYZ = 65535;      // hardware
constexpr uint32_t kMaxGridX = 0x7fffffff;  // hardware

class HostKernel final : public Kernel {
 public:
  HostKernel(const KernelKey& key, const HostInstance& instance) : instance_(instance) {
    key_ = key;
    report_.from_cache = true;
    report_.code_hash = "sha256:" + sha256_hex(source_hash_text(key.header) + normalized_entry(key.entry));
  }
  const HostInstance& instance() const { return instance_; }

 private:
  const HostInstance& instance_;
};

class HostEvent final : public Event {
 public:
  Result<double> elapsed_ns(const Event& earlier) const override {
    const auto* start = dynamic_cast<const HostEvent*>(&earlier);
    if (start == nullptr || !start->time_ || !time_) {
      return invalid("elapsed time between events of which one was not recorded on this device");
    }
    return std::chrono::duration<double, std::nano>(*time_ - *start->time_).count();
  }
  Status synchronize() const override { return success(); }  // work is done when it was enqueued
  void record() { time_ = std::chrono::steady_clock::now(); }

 private:
  std::optional<std::chrono::steady_clock::time_point> time_;
};

class HostGraph final : public ExecGraph {
 public:
  explicit HostGraph(std::span<const Work> works) : works_(works.begin(), works.end()) {}

  Status update(size_t index, const Work& work) override {
    if (index >= works_.size()) {
      return invalid(fmt::format("update of work {} in a graph of {}", index, works_.size()));
    }
    if (works_[index].index() != work.index()) {
      return invalid(fmt::format("update of work {} in a graph by work of another kind", index));
    }
    works_[index] = work;
    return success();
  }
  std::vector<void*> native_nodes(size_t) const override { return {}; }
  const std::vector<Work>& works() const { return works_; }

 private:
  std::vector<Work> works_;
};

// A kernel that becomes an empty one when the flag is set: threads that have begun then run on, the others end at once.
// Blocks run one after another, so at most one per core has both kinds; its barriers may then wait in vain, which ends
// the launch as any such fault does.
struct StoppableCall {
  void (*run)(const std::byte* args);
  const std::byte* args;
  const std::atomic<bool>* stop;
};

void run_unless_stopped(const std::byte* bytes) {
  const auto& call = *reinterpret_cast<const StoppableCall*>(bytes);
  if (!call.stop->load(std::memory_order_relaxed)) {
    call.run(call.args);
  }
}

// A seed asks for shuffling by itself.
host::Order order_of(const DeviceOptions& options) {
  if (options.shuffle_threads_seed != 0) {
    return host::Order::kShuffled;
  }
  switch (options.thread_order) {
    case DeviceOptions::ThreadOrder::kAscending:
      break;
    case DeviceOptions::ThreadOrder::kDescending:
      return host::Order::kDescending;
    case DeviceOptions::ThreadOrder::kShuffled:
      return host::Order::kShuffled;
  }
  return host::Order::kAscending;
}

class HostDevice final : public Device {
 public:
  HostDevice(int index, const HostArch& arch, const DeviceOptions& options, int64_t memory_bytes)
      : order_(order_of(options)),
        seed_(options.shuffle_threads_seed),
        interrupted_(options.interrupted),
        memory_(memory_bytes) {
    info_.id =
        arch.arch == kDefaultHostArch ? fmt::format("host:{}", index) : fmt::format("host:{}@{}", index, arch.arch);
    info_.name = fmt::format("emulated {}", arch.arch);
    info_.arch = arch.arch;
    info_.cc = arch.cc;
    info_.sm_count = arch.sm_count;
    info_.l2_bytes = arch.l2_bytes;
    info_.memory_bytes = memory_bytes;
    info_.max_shared_bytes = arch.max_shared_bytes;
    info_.emulated = true;
  }

  const DeviceInfo& info() const override { return info_; }
  Result<const Kernel*> kernel(const KernelKey& key) override;
  Status prepare(std::span<const KernelKey> keys) override;
  Result<Memory> allocate(int64_t bytes) override {
    CUDABK_ASSIGN(DevicePtr ptr, memory_.allocate(bytes));
    return Memory(this, ptr, bytes);
  }
  Result<PinnedMemory> allocate_pinned(int64_t bytes) override {
    constexpr std::align_val_t kAlignment{256};
    void* ptr = ::operator new(static_cast<size_t>(bytes), kAlignment, std::nothrow);
    if (ptr == nullptr) {
      return unfit(fmt::format("{}: no host memory of {} bytes", info_.id, bytes));
    }
    return PinnedMemory(static_cast<std::byte*>(ptr), [](std::byte* p) { ::operator delete(p, kAlignment); });
  }
  Result<std::pair<int64_t, int64_t>> memory_free_total() override {
    return std::pair{memory_.free_bytes(), memory_.total_bytes()};
  }
  Status upload(DevicePtr dst, const void* src, int64_t bytes) override {
    CUDABK_TRY(memory_.check_range("upload", dst, bytes));
    copy_bytes(dst, src, bytes);
    return success();
  }
  Status download(void* dst, DevicePtr src, int64_t bytes) override {
    CUDABK_TRY(memory_.check_range("download", src, bytes));
    copy_bytes(dst, src, bytes);
    return success();
  }
  Status fill(DevicePtr dst, uint8_t value, int64_t bytes) override {
    CUDABK_TRY(memory_.check_range("fill", dst, bytes));
    if (bytes > 0) {
      std::memset(dst, value, static_cast<size_t>(bytes));
    }
    return success();
  }
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override { return std::unique_ptr<Event>(new HostEvent); }
  Result<std::unique_ptr<ExecGraph>> build_graph(std::span<const Work> works) override;
  Status synchronize() override { return success(); }
  Status gemm_available() override { return success(); }

  Status run(const Work& work);
  Status copy(DevicePtr dst, DevicePtr src, int64_t bytes) {
    CUDABK_TRY(memory_.check_range("copy", src, bytes));
    return upload(dst, src, bytes);
  }

 protected:
  void release(DevicePtr ptr, int64_t) override { memory_.release(ptr); }

 private:
  static void copy_bytes(void* dst, const void* src, int64_t bytes) {
    if (bytes > 0) {
      std::memcpy(dst, src, static_cast<size_t>(bytes));
    }
  }
  Status check(const KernelLaunch& launch) const;
  Status run_kernel(const KernelLaunch& launch);
  bool interrupted() const { return interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed); }

  DeviceInfo info_;
  host::Order order_;
  uint64_t seed_;
  const std::atomic<bool>* interrupted_;  // may be null
  HostMemory memory_;
  std::map<KernelKey, std::unique_ptr<HostKernel>> kernels_;
};

class HostStream final : public Stream {
 public:
  explicit HostStream(HostDevice& device) : device_(device) {}

  Status run(const Work& work) override { return device_.run(work); }
  Status run(ExecGraph& graph) override {
    const auto* mine = dynamic_cast<const HostGraph*>(&graph);
    if (mine == nullptr) {
      return invalid("a graph of another device cannot run on the emulated device");
    }
    for (const Work& work : mine->works()) {
      CUDABK_TRY(device_.run(work));
    }
    return success();
  }
  Status record(Event& event) override {
    auto* mine = dynamic_cast<HostEvent*>(&event);
    if (mine == nullptr) {
      return invalid("an event of another device cannot be recorded on the emulated device");
    }
    mine->record();
    return success();
  }
  Status wait(const Event& event) override {
    return dynamic_cast<const HostEvent*>(&event) != nullptr
               ? success()
               : Status(invalid("an event of another device cannot be waited for on the emulated device"));
  }
  Status upload(DevicePtr dst, const void* src, int64_t bytes) override { return device_.upload(dst, src, bytes); }
  Status download(void* dst, DevicePtr src, int64_t bytes) override { return device_.download(dst, src, bytes); }
  Status copy(DevicePtr dst, DevicePtr src, int64_t bytes) override { return device_.copy(dst, src, bytes); }
  Status synchronize() override { return success(); }
  void* native() const override { return nullptr; }

 private:
  HostDevice& device_;
};

// Which lists name variants of `header`; the family's own list when none does.
std::string list_files_of(std::string_view header) {
  std::string files;
  for (const ListedKernel& listed : listed_kernels()) {
    if (listed.header == header && files.find(listed.list_file) == std::string::npos) {
      files += files.empty() ? "" : ", ";
      files += listed.list_file;
    }
  }
  if (files.empty()) {
    files = fmt::format("kernels/{}/instances.txt", header.substr(0, header.find('/')));
  }
  return files;
}

Result<const Kernel*> HostDevice::kernel(const KernelKey& key) {
  const auto known = kernels_.find(key);
  if (known != kernels_.end()) {
    return static_cast<const Kernel*>(known->second.get());
  }
  const HostInstance* instance = find_host_instance(key.header, key.entry);
  if (instance == nullptr) {
    return unsupported(fmt::format("the emulated device has no variant {} of kernels/{}; it knows those listed in {}",
                                   key.entry, key.header, list_files_of(key.header)));
  }
  if (key.args_bytes != 0 && key.args_bytes != instance->args_bytes) {
    return internal_error(fmt::format("{}: the argument struct has {} bytes here, {} in the kernel", key.entry,
                                      key.args_bytes, instance->args_bytes));
  }
  auto& kernel = kernels_[key];
  kernel = std::make_unique<HostKernel>(key, *instance);
  return static_cast<const Kernel*>(kernel.get());
}

Status HostDevice::prepare(std::span<const KernelKey> keys) {
  Status first;
  for (const KernelKey& key : keys) {
    auto loaded = kernel(key);
    if (!loaded.ok() && first.ok()) {
      first = std::move(loaded).error();
    }
  }
  return first;
}

Result<std::unique_ptr<Stream>> HostDevice::create_stream() { return std::unique_ptr<Stream>(new HostStream(*this)); }

Result<std::unique_ptr<ExecGraph>> HostDevice::build_graph(std::span<const Work> works) {
  for (const Work& work : works) {
    if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
      CUDABK_TRY(check(*launch));
    }
  }
  return std::unique_ptr<ExecGraph>(new HostGraph(works));
}

// What a GPU's launch call would refuse.
Status HostDevice::check(const KernelLaunch& launch) const {
  const auto* kernel = dynamic_cast<const HostKernel*>(launch.kernel);
  if (kernel == nullptr) {
    return invalid("launch of a kernel that was not loaded by the emulated device");
  }
  const Dim3 &grid = launch.grid, &block = launch.block;
  const std::string& name = kernel->key().entry;
  if (grid.count() == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) {
    return internal_error(fmt::format("{}: grid ({}, {}, {}) is empty or beyond ({}, {}, {})", name, grid.x, grid.y,
                                      grid.z, kMaxGridX, kMaxGridYZ, kMaxGridYZ));
  }
  if (block.x == 0 || block.x > static_cast<uint32_t>(info_.max_threads_per_block) || block.y != 1 || block.z != 1) {
    return internal_error(fmt::format("{}: block ({}, {}, {}); blocks are one-dimensional, of 1 to {} threads", name,
                                      block.x, block.y, block.z, info_.max_threads_per_block));
  }
  if (launch.shared_bytes > static_cast<uint32_t>(info_.max_shared_bytes)) {
    return internal_error(fmt::format("{}: {} bytes of shared memory, {} offers {}", name, launch.shared_bytes,
                                      info_.name, info_.max_shared_bytes));
  }
  if (launch.args.size() != kernel->instance().args_bytes) {
    return internal_error(fmt::format("{}: {} bytes of arguments, the kernel takes {}", name, launch.args.size(),
                                      kernel->instance().args_bytes));
  }
  return success();
}

Status HostDevice::run_kernel(const KernelLaunch& launch) {
  CUDABK_TRY(check(launch));
  const auto& kernel = static_cast<const HostKernel&>(*launch.kernel);
  host::HostLaunch call;
  call.run = kernel.instance().run;
  call.args = launch.args.data();
  call.name = kernel.key().entry;
  call.grid[0] = launch.grid.x;
  call.grid[1] = launch.grid.y;
  call.grid[2] = launch.grid.z;
  call.threads = launch.block.x;
  call.shared_bytes = launch.shared_bytes;
  call.seed = seed_;
  call.order = order_;
  const StoppableCall stoppable{call.run, call.args, interrupted_};
  if (interrupted_ != nullptr) {
    call.run = run_unless_stopped;
    call.args = reinterpret_cast<const std::byte*>(&stoppable);
  }
  std::optional<std::string> error = host::run_launch(call);
  if (interrupted()) {  // a fault may be of the interruption's making
    return Error{ErrorKind::kInterrupted, fmt::format("interrupted in {}", call.name)};
  }
  if (error) {
    return internal_error(std::move(*error));
  }
  return success();
}

Status HostDevice::run(const Work& work) {
  if (const auto* launch = std::get_if<KernelLaunch>(&work)) {
    return run_kernel(*launch);
  }
  if (const auto* gemm = std::get_if<GemmCall>(&work)) {
    return run_host_gemm(*gemm, interrupted_);
  }
  const auto& call = std::get<FillCall>(work);
  return fill(call.dst, call.value, call.bytes);
}

}  // namespace

Result<std::unique_ptr<Device>> open_host_device(int index, std::string_view arch, const DeviceOptions& options) {
  CUDABK_ASSIGN(const HostArch known, find_host_arch(arch));
  if (index < 0 || index >= kMaxHostDevices) {
    return unfit(fmt::format("there is no emulated device {}; they are numbered 0 to {}", index, kMaxHostDevices - 1));
  }
  // Half of the machine's memory; the rest is for the reference and the caller.
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
  return std::unique_ptr<Device>(new HostDevice(index, known, options, memory));
}

}  // namespace cudabk
