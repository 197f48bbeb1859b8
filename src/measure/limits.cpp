#include "measure/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "core/units.h"
#include "measure/args.h"
#include "measure/clock.h"
#include "measure/statistics.h"

namespace cudabk {
namespace {

constexpr int64_t kGpuBytes = 2LL << 30;  // half of it is read, written or holds GEMM operands
constexpr int64_t kSmallestGpuBytes = 64 << 20;
constexpr int64_t kEmulatedBytes = 2 << 20;
constexpr int64_t kSeedBytes = 16 << 20;  // random data made by the host; the rest repeats it
constexpr int kSamples = 5;
constexpr double kShareOfFree = 0.5;
constexpr double kCoverNs = 30e3;  // launch latency hidden behind a spinning kernel

struct CopyShape {
  int threads, unroll, blocks_per_sm;  // blocks_per_sm 0: one block per tile
};
// Streams of 16-byte loads. Which grid wins differs by architecture, so a few are tried.
constexpr CopyShape kShapes[] = {{256, 4, 0}, {256, 8, 0}, {512, 4, 0}, {512, 8, 0}, {512, 4, 4}, {512, 8, 2}};
constexpr CopyShape kEmulatedShapes[] = {{256, 8, 0}};

struct GemmShape {
  int64_t m, n, k;
};
constexpr GemmShape kGemmShapes[] = {{8192, 8192, 8192}, {8192, 4096, 16384}, {16384, 8192, 4096}};
constexpr GemmShape kEmulatedGemmShapes[] = {{64, 64, 256}, {128, 64, 128}, {128, 128, 64}};

class LimitsRun {
 public:
  LimitsRun(Device& device, const std::atomic<bool>* interrupted) : device_(device), interrupted_(interrupted) {
    limits_.emulated = device.info().emulated;
  }

  Result<MachineLimits> run() {
    CUDABK_TRY(prepare());
    CUDABK_TRY(fill_random());
    CUDABK_TRY(measure_bandwidth());
    CUDABK_TRY(measure_gemm());
    CUDABK_ASSIGN(limits_.sm_clock_mhz, spin_->clock_mhz(*stream_));
    return limits_;
  }

 private:
  Status prepare();
  Status fill_random();
  Status measure_bandwidth();
  Status measure_gemm();
  Result<double> gemm_tflops(const GemmShape& shape);
  Result<double> best_ns(const Work& work);
  Result<Work> read_work(const CopyShape& shape, int64_t& bytes, std::string& name);
  Result<Work> copy_work(const CopyShape& shape, DevicePtr src, DevicePtr dst, int64_t& bytes, std::string& name);
  std::span<const CopyShape> shapes() const {
    return limits_.emulated ? std::span<const CopyShape>(kEmulatedShapes) : std::span<const CopyShape>(kShapes);
  }
  Status check_interrupted() const {
    if (interrupted_ != nullptr && interrupted_->load()) {
      return Error{ErrorKind::kInterrupted, "interrupted while the machine's limits were measured"};
    }
    return success();
  }

  Device& device_;
  const std::atomic<bool>* interrupted_;
  MachineLimits limits_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  std::unique_ptr<SpinKernel> spin_;
  Memory data_, sink_;
  int64_t bytes_ = 0;
};

KernelKey read_key(const CopyShape& s) {
  return {"measure/read_bandwidth.h", fmt::format("read_bandwidth<{}, {}>", s.threads, s.unroll),
          sizeof(ReadBandwidthArgs)};
}
KernelKey copy_key(const CopyShape& s) {
  return {"measure/copy_bandwidth.h", fmt::format("copy_bandwidth<{}, {}>", s.threads, s.unroll),
          sizeof(CopyBandwidthArgs)};
}

int64_t tile_bytes(const CopyShape& s) { return int64_t{16} * s.threads * s.unroll; }

template <class Args>
Work make_launch(const Kernel* kernel, const CopyShape& shape, int sm_count, const Args& args) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.block = {static_cast<uint32_t>(shape.threads), 1, 1};
  const int64_t persistent = int64_t{sm_count} * shape.blocks_per_sm;
  launch.grid = {static_cast<uint32_t>(shape.blocks_per_sm == 0 ? args.tiles : std::min(args.tiles, persistent)), 1, 1};
  launch.args.resize(sizeof(Args));
  std::memcpy(launch.args.data(), &args, sizeof(Args));
  return launch;
}

Status LimitsRun::prepare() {
  CUDABK_ASSIGN(stream_, device_.create_stream());
  CUDABK_ASSIGN(begin_, device_.create_event());
  CUDABK_ASSIGN(end_, device_.create_event());
  std::vector<KernelKey> keys;
  for (const CopyShape& shape : shapes()) {
    keys.push_back(read_key(shape));
    keys.push_back(copy_key(shape));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  CUDABK_TRY(device_.prepare(keys));
  CUDABK_ASSIGN(spin_, SpinKernel::create(device_));
  bytes_ = kEmulatedBytes;
  if (!limits_.emulated) {
    CUDABK_ASSIGN(const auto memory, device_.memory_free_total());
    const auto usable = static_cast<int64_t>(kShareOfFree * static_cast<double>(memory.first));
    if (usable < kSmallestGpuBytes) {
      return unfit(fmt::format("the machine's limits need {} of free device memory, {} are free",
                               format_bytes(static_cast<double>(kSmallestGpuBytes) / kShareOfFree),
                               format_bytes(static_cast<double>(memory.first))));
    }
    bytes_ = std::min(kGpuBytes, usable) / (1 << 20) * (1 << 20);
  }
  CUDABK_ASSIGN(data_, device_.allocate(bytes_));
  CUDABK_ASSIGN(sink_, device_.allocate(256));
  return success();
}

// Random bf16 values in [-1, 1): power, and with it the clock, depends on the data.
Status LimitsRun::fill_random() {
  const int64_t seed_bytes = std::min(kSeedBytes, bytes_ / 2);
  std::vector<uint32_t> words(static_cast<size_t>(seed_bytes / 4));
  std::minstd_rand random(1);
  for (uint32_t& word : words) {
    // Two bf16 values: random sign and mantissa, exponents of [1/16, 1).
    const uint32_t bits = static_cast<uint32_t>(random()) ^ static_cast<uint32_t>(random()) << 16;
    const auto half = [](uint32_t r) { return (r & 0x807fU) | (0x7bU + (r >> 8 & 3U)) << 7; };
    word = half(bits & 0xffffU) | half(bits >> 16) << 16;
  }
  CUDABK_TRY(device_.upload(data_.ptr(), words.data(), seed_bytes));
  for (int64_t done = seed_bytes; done < bytes_;) {  // doubles what is there
    const int64_t step = std::min(done, bytes_ - done);
    int64_t copied = step;
    std::string name;
    CUDABK_ASSIGN(const Work work, copy_work(shapes().front(), data_.ptr(), data_.ptr() + done, copied, name));
    CUDABK_TRY(stream_->run(work));
    done += step;
  }
  return stream_->synchronize();
}

// `bytes`: in, what to read at most; out, what is read.
Result<Work> LimitsRun::read_work(const CopyShape& shape, int64_t& bytes, std::string& name) {
  CUDABK_ASSIGN(const Kernel* kernel, device_.kernel(read_key(shape)));
  ReadBandwidthArgs args{};
  args.data = reinterpret_cast<const uint32_t*>(data_.ptr());
  args.sink = reinterpret_cast<uint32_t*>(sink_.ptr());
  args.tiles = bytes / tile_bytes(shape);
  args.unlikely = 0x9e3779b9U;  // any value
  bytes = args.tiles * tile_bytes(shape);
  name = fmt::format("{}{}", kernel->key().entry, shape.blocks_per_sm == 0 ? "" : " persistent");
  return make_launch(kernel, shape, device_.info().sm_count, args);
}

Result<Work> LimitsRun::copy_work(const CopyShape& shape, DevicePtr src, DevicePtr dst, int64_t& bytes,
                                  std::string& name) {
  CUDABK_ASSIGN(const Kernel* kernel, device_.kernel(copy_key(shape)));
  CopyBandwidthArgs args{};
  args.src = reinterpret_cast<const uint32_t*>(src);
  args.dst = reinterpret_cast<uint32_t*>(dst);
  args.tiles = bytes / tile_bytes(shape);
  bytes = args.tiles * tile_bytes(shape);
  name = fmt::format("{}{}", kernel->key().entry, shape.blocks_per_sm == 0 ? "" : " persistent");
  return make_launch(kernel, shape, device_.info().sm_count, args);
}

// The fastest of a few runs: a limit is what the machine can do, not what it usually does.
Result<double> LimitsRun::best_ns(const Work& work) {
  double best = 0;
  for (int i = 0; i <= kSamples; ++i) {
    CUDABK_TRY(check_interrupted());
    if (!limits_.emulated) {
      CUDABK_TRY(stream_->run(spin_->delay(kCoverNs)));
    }
    CUDABK_TRY(stream_->record(*begin_));
    CUDABK_TRY(stream_->run(work));
    CUDABK_TRY(stream_->record(*end_));
    CUDABK_ASSIGN(const double ns, end_->elapsed_ns(*begin_));
    if (i > 0 && ns > 0 && (best == 0 || ns < best)) {  // run 0 warms up
      best = ns;
    }
  }
  if (best <= 0) {
    return internal_error("the device's events measured no time");
  }
  return best;
}

Status LimitsRun::measure_bandwidth() {
  for (const CopyShape& shape : shapes()) {
    int64_t bytes = bytes_;
    std::string name;
    CUDABK_ASSIGN(const Work read, read_work(shape, bytes, name));
    CUDABK_ASSIGN(const double read_ns, best_ns(read));
    if (const double gbps = static_cast<double>(bytes) / read_ns; gbps > limits_.read_gbps) {
      limits_.read_gbps = gbps;
      limits_.read_kernel = name;
    }
    bytes = bytes_ / 2;
    CUDABK_ASSIGN(const Work copy, copy_work(shape, data_.ptr(), data_.ptr() + bytes_ / 2, bytes, name));
    CUDABK_ASSIGN(const double copy_ns, best_ns(copy));
    if (const double gbps = 2 * static_cast<double>(bytes) / copy_ns; gbps > limits_.copy_gbps) {
      limits_.copy_gbps = gbps;
      limits_.copy_kernel = name;
    }
  }
  return success();
}

Result<double> LimitsRun::gemm_tflops(const GemmShape& shape) {
  GemmCall call;
  call.type_ab = DType::bf16;
  call.type_c = DType::bf16;
  call.m = shape.m;
  call.n = shape.n;
  call.k = shape.k;
  call.lda = call.ldb = shape.k;
  call.ldc = shape.m;
  call.a = data_.ptr();
  call.b = call.a + 2 * shape.m * shape.k;
  call.c = call.b + 2 * shape.n * shape.k;
  CUDABK_ASSIGN(const double ns, best_ns(call));
  return 2e-3 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) / ns;
}

Status LimitsRun::measure_gemm() {
  if (auto available = device_.gemm_available(); !available.ok()) {
    limits_.gemm_reason = available.error().message;
    return success();
  }
  const std::span<const GemmShape> gemms =
      limits_.emulated ? std::span<const GemmShape>(kEmulatedGemmShapes) : std::span<const GemmShape>(kGemmShapes);
  for (const GemmShape& shape : gemms) {
    if (2 * (shape.m * shape.k + shape.n * shape.k + shape.m * shape.n) > bytes_) {
      limits_.gemm_reason = "not enough free device memory for a large matrix product";
      continue;
    }
    CUDABK_ASSIGN(const double tflops, gemm_tflops(shape));
    if (tflops > limits_.gemm_tflops) {
      limits_.gemm_tflops = tflops;
      limits_.gemm_shape = fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
    }
  }
  if (limits_.gemm_tflops > 0) {
    limits_.gemm_reason.clear();
  }
  return success();
}

}  // namespace

Result<MachineLimits> measure_limits(Device& device, const std::atomic<bool>* interrupted) {
  auto limits = LimitsRun(device, interrupted).run();
  if (!limits.ok()) {
    return std::move(limits).error().with_context("machine limits");
  }
  return limits;
}

Result<MachineLimits> machine_limits(Device& device, const std::atomic<bool>* interrupted) {
  static std::mutex mutex;
  static std::map<std::string, MachineLimits> known;  // by device; failures are tried again
  const std::string key = device.info().id + " " + device.info().name;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) {
    return found->second;
  }
  CUDABK_ASSIGN(MachineLimits limits, measure_limits(device, interrupted));
  known[key] = limits;
  return limits;
}

}  // namespace cudabk
