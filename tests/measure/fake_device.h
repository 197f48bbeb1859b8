// A device whose time is a counter. It runs nothing; only delays (spin kernels) move its time.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "device/device.h"
#include "measure/args.h"

namespace cudabk {

class FakeEvent final : public Event {
 public:
  double time_ns = -1;
  Result<double> elapsed_ns(const Event& earlier) const override {
    return time_ns - dynamic_cast<const FakeEvent&>(earlier).time_ns;
  }
  Status synchronize() const override { return success(); }
};

class FakeKernel final : public Kernel {};

class FakeStream final : public Stream {
 public:
  double time_ns = 0;
  int delays = 0;
  Status run(const Work& work) override {
    SpinArgs args{};
    std::memcpy(&args, std::get<KernelLaunch>(work).args.data(), sizeof(args));
    time_ns += static_cast<double>(args.duration_ns);
    queued = true;
    ++delays;
    return success();
  }
  Status run(ExecGraph&) override { return internal_error("not expected"); }
  Status record(Event& event) override {
    dynamic_cast<FakeEvent&>(event).time_ns = time_ns;
    return success();
  }
  Status wait(const Event&) override { return success(); }
  Status upload(DevicePtr, const void*, int64_t) override { return success(); }
  Status download(void*, DevicePtr, int64_t) override { return success(); }
  Status copy(DevicePtr, DevicePtr, int64_t) override { return success(); }
  Status synchronize() override {
    queued = false;
    return success();
  }
  void* native() const override { return nullptr; }
  bool queued = false;  // work is waiting: the next replay starts without latency
};

class FakeDevice final : public Device {
 public:
  DeviceInfo device_info;
  const DeviceInfo& info() const override { return device_info; }
  Result<const Kernel*> kernel(const KernelKey&) override { return &kernel_; }
  Status prepare(std::span<const KernelKey>) override { return success(); }
  Result<Memory> allocate(int64_t bytes) override { return Memory(this, storage_, bytes); }
  Result<PinnedMemory> allocate_pinned(int64_t) override { return unfit("none"); }
  Result<std::pair<int64_t, int64_t>> memory_free_total() override {
    return std::pair<int64_t, int64_t>(1 << 30, 1 << 30);
  }
  Status upload(DevicePtr, const void*, int64_t) override { return success(); }
  Status download(void*, DevicePtr, int64_t) override { return success(); }
  Status fill(DevicePtr, uint8_t, int64_t) override { return success(); }
  Result<std::unique_ptr<Stream>> create_stream() override { return std::unique_ptr<Stream>(new FakeStream); }
  Result<std::unique_ptr<Event>> create_event() override { return std::unique_ptr<Event>(new FakeEvent); }
  Result<std::unique_ptr<ExecGraph>> build_graph(std::span<const Work>) override { return unsupported("none"); }
  Status synchronize() override { return success(); }
  Status gemm_available() override { return success(); }

 protected:
  void release(DevicePtr, int64_t) override {}

 private:
  FakeKernel kernel_;
  std::byte storage_[64];
};

}  // namespace cudabk
