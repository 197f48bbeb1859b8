// The emulated device behind the Device interface: instances, memory, graphs, launch limits, GEMM.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "device/device.h"
#include "kernel_text.h"
#include "platform/host_instances.h"
#include "platform/host_numbers.h"
#include "probe/args.h"

namespace cudabk {
namespace {

std::unique_ptr<Device> open(std::string_view name, DeviceOptions options = {}) {
  auto device = open_device(name, options);
  EXPECT_TRUE(device.ok()) << (device.ok() ? "" : device.error().message);
  return std::move(device).value();
}

template <class Args>
std::vector<std::byte> bytes_of(const Args& args) {
  std::vector<std::byte> bytes(sizeof(Args));
  std::memcpy(bytes.data(), &args, sizeof(Args));
  return bytes;
}

class Probe : public ::testing::Test {
 protected:
  static constexpr int kCount = 1000;

  void SetUp() override {
    device_ = open("host");
    auto kernel = device_->kernel({"probe/probe.h", "probe< 256 >", sizeof(ProbeArgs)});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    kernel_ = *kernel;
    auto x = device_->allocate(kCount * 4), y = device_->allocate(kCount * 4);
    ASSERT_TRUE(x.ok() && y.ok());
    x_ = std::move(x).value();
    y_ = std::move(y).value();
    for (int i = 0; i < kCount; ++i) {
      host_[i] = static_cast<float>(i);
    }
    ASSERT_TRUE(device_->upload(x_.ptr(), host_, sizeof(host_)).ok());
    auto stream = device_->create_stream();
    ASSERT_TRUE(stream.ok());
    stream_ = std::move(stream).value();
  }

  KernelLaunch launch(float scale) const {
    const ProbeArgs args{reinterpret_cast<const float*>(x_.ptr()), reinterpret_cast<float*>(y_.ptr()), kCount, scale};
    return {kernel_, {4, 1, 1}, {256, 1, 1}, 1024, false, bytes_of(args)};
  }
  void expect_scaled(float scale) {
    float result[kCount];
    ASSERT_TRUE(device_->download(result, y_.ptr(), sizeof(result)).ok());
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(result[i], scale * static_cast<float>(i)) << "element " << i;
    }
  }

  std::unique_ptr<Device> device_;
  const Kernel* kernel_ = nullptr;
  Memory x_, y_;
  std::unique_ptr<Stream> stream_;
  float host_[kCount];
};

TEST_F(Probe, RunsOnAStreamAndIsTimed) {
  auto before = device_->create_event(), after = device_->create_event();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_FALSE((*after)->elapsed_ns(**before).ok());
  ASSERT_TRUE(stream_->record(**before).ok());
  const auto status = stream_->run(launch(3));
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_TRUE(stream_->record(**after).ok());
  expect_scaled(3);
  const auto elapsed = (*after)->elapsed_ns(**before);
  ASSERT_TRUE(elapsed.ok());
  EXPECT_GT(*elapsed, 0);
}

TEST_F(Probe, StreamsCopyAndWaitForEachOther) {
  auto other = device_->create_stream();
  auto done = device_->create_event();
  auto pinned = device_->allocate_pinned(sizeof(host_));
  ASSERT_TRUE(other.ok() && done.ok() && pinned.ok());
  ASSERT_TRUE((*done)->synchronize().ok());  // never recorded: nothing to wait for
  std::memcpy(pinned->get(), host_, sizeof(host_));
  ASSERT_TRUE(stream_->upload(x_.ptr(), pinned->get(), sizeof(host_)).ok());
  ASSERT_TRUE(stream_->run(launch(4)).ok());
  ASSERT_TRUE(stream_->record(**done).ok());
  ASSERT_TRUE((*other)->wait(**done).ok());
  ASSERT_TRUE((*other)->copy(x_.ptr(), y_.ptr(), sizeof(host_)).ok());
  float result[kCount];
  ASSERT_TRUE((*other)->download(result, x_.ptr(), sizeof(result)).ok());
  ASSERT_TRUE((*other)->synchronize().ok());
  EXPECT_EQ(result[7], 28.0F);
  EXPECT_FALSE(stream_->copy(x_.ptr(), y_.ptr() + 4, sizeof(host_)).ok());
  EXPECT_FALSE(stream_->copy(x_.ptr() + 4, y_.ptr(), sizeof(host_)).ok());
  EXPECT_FALSE(stream_->upload(x_.ptr() + 4, host_, sizeof(host_)).ok());
  EXPECT_FALSE(stream_->download(result, x_.ptr() + 4, sizeof(result)).ok());
}

TEST_F(Probe, GraphReplaysAndIsUpdated) {
  const Work works[] = {FillCall{y_.ptr(), 0, y_.bytes()}, launch(2)};
  auto graph = device_->build_graph(works);
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(stream_->run(**graph).ok());
  expect_scaled(2);
  ASSERT_TRUE((*graph)->update(1, launch(5)).ok());
  ASSERT_TRUE(stream_->run(**graph).ok());
  expect_scaled(5);
  EXPECT_FALSE((*graph)->update(0, launch(5)).ok());
  EXPECT_FALSE((*graph)->update(2, launch(5)).ok());
  EXPECT_TRUE((*graph)->native_nodes(0).empty());
}

TEST_F(Probe, LaunchLimitsAreErrors) {
  const auto refused = [&](auto change) {
    KernelLaunch bad = launch(1);
    change(bad);
    return !stream_->run(bad).ok();
  };
  EXPECT_FALSE(refused([](KernelLaunch&) {}));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.block.x = 1025; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.block.x = 0; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.grid.y = 65536; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.grid.z = 65536; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.grid.x = 0; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.shared_bytes = 200 << 10; }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.args.pop_back(); }));
  EXPECT_TRUE(refused([](KernelLaunch& l) { l.kernel = nullptr; }));
}

TEST_F(Probe, UnlistedVariantNamesItselfAndTheList) {
  const auto kernel = device_->kernel({"probe/probe.h", "probe<64>"});
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(kernel.error().message.find("probe<64>"), std::string::npos) << kernel.error().message;
  EXPECT_NE(kernel.error().message.find("kernels/probe/instances.txt"), std::string::npos) << kernel.error().message;
  const auto wrong_size = device_->kernel({"probe/probe.h", "probe<256>", 12});
  EXPECT_FALSE(wrong_size.ok());
  const KernelKey keys[] = {{"probe/probe.h", "probe<32>"}, {"nowhere/nothing.h", "nothing"}};
  const auto status = device_->prepare(keys);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("kernels/nowhere/instances.txt"), std::string::npos) << status.error().message;
}

TEST_F(Probe, CopiesOutsideABufferAreErrors) {
  std::byte bytes[16] = {};
  EXPECT_TRUE(device_->upload(x_.ptr() + x_.bytes() - 16, bytes, 16).ok());
  EXPECT_FALSE(device_->upload(x_.ptr() + x_.bytes() - 15, bytes, 16).ok());
  EXPECT_FALSE(device_->download(bytes, x_.ptr() + x_.bytes(), 1).ok());
  EXPECT_FALSE(device_->download(bytes, nullptr, 1).ok());
  EXPECT_FALSE(device_->fill(x_.ptr(), 0, x_.bytes() + 1).ok());
  EXPECT_FALSE(device_->fill(x_.ptr(), 0, -1).ok());
  EXPECT_TRUE(device_->fill(nullptr, 0, 0).ok());
}

TEST_F(Probe, ThreadOrdersGiveTheSameResult) {
  for (const auto& [seed, order] : {std::pair{uint64_t{0}, DeviceOptions::ThreadOrder::kDescending},
                                    std::pair{uint64_t{5}, DeviceOptions::ThreadOrder::kAscending},
                                    std::pair{uint64_t{0}, DeviceOptions::ThreadOrder::kShuffled}}) {
    DeviceOptions options;
    options.shuffle_threads_seed = seed;
    options.thread_order = order;
    auto other = open("host:1", options);
    auto stream = other->create_stream();
    KernelLaunch mine = launch(7);
    mine.kernel = *other->kernel({"probe/probe.h", "probe<256>"});
    ASSERT_TRUE((*stream)->run(mine).ok());
    expect_scaled(7);
  }
}

TEST_F(Probe, DevicesRunOnSeveralThreadsAtOnce) {
  std::atomic<int> good = 0;
  const auto work = [&](std::string_view name) {
    auto device = open_device(name, {});
    auto kernel = (*device)->kernel({"probe/probe.h", "probe<256>"});
    auto y = (*device)->allocate(kCount * 4);
    auto stream = (*device)->create_stream();
    const ProbeArgs args{host_, reinterpret_cast<float*>(y->ptr()), kCount, 2};
    for (int i = 0; i < 50; ++i) {
      good += (*stream)->run(KernelLaunch{*kernel, {4, 1, 1}, {256, 1, 1}, 1024, false, bytes_of(args)}).ok() &&
              reinterpret_cast<const float*>(y->ptr())[kCount - 1] == 2 * (kCount - 1);
    }
  };
  std::thread a(work, "host:0"), b(work, "host:1"), c(work, "host:2");
  a.join();
  b.join();
  c.join();
  EXPECT_EQ(good, 150);
}

// Ctrl-C in the middle of a long kernel: it ends, its later blocks are not run, and the device works again afterwards.
// The flag lies where the kernel writes one of its results, so that it is set while a known block runs.
TEST_F(Probe, AFlagEndsAKernelBetweenBlocks) {
  constexpr uint32_t kBlocks = 1000, kStopAt = 100;
  constexpr size_t kLong = size_t{256} * kBlocks, kFlag = size_t{256} * kStopAt;
  const auto half = std::bit_cast<float>(0x00810101U);  // times 2 every byte is 1
  std::vector<float> x(kLong, half), y(kLong, 0);
  DeviceOptions options;
  options.interrupted = reinterpret_cast<const std::atomic<bool>*>(&y[kFlag]);
  auto device = open("host:1", options);
  auto stream = device->create_stream();
  KernelLaunch work = launch(1);
  work.kernel = *device->kernel({"probe/probe.h", "probe<256>"});
  work.grid = {kBlocks, 1, 1};
  work.args = bytes_of(ProbeArgs{x.data(), y.data(), static_cast<int>(kLong), 2});
  const Status cut = (*stream)->run(work);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().kind, ErrorKind::kInterrupted) << cut.error().message;
  EXPECT_NE(cut.error().message.find("probe<"), std::string::npos) << cut.error().message;
  EXPECT_NE(y[kFlag - 1], 0);
  EXPECT_EQ(std::count(y.begin() + kLong / 2, y.end(), 0.0F), static_cast<int64_t>(kLong / 2));

  EXPECT_EQ((*stream)->run(work).error().kind, ErrorKind::kInterrupted);  // until the flag is taken back
  std::vector<float> product(64);
  GemmCall gemm;
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 8;
  gemm.a = gemm.b = reinterpret_cast<DevicePtr>(x.data());
  gemm.c = reinterpret_cast<DevicePtr>(product.data());
  EXPECT_EQ((*stream)->run(gemm).error().kind, ErrorKind::kInterrupted);
  y[kFlag] = x[kFlag] = 0;
  EXPECT_TRUE((*stream)->run(gemm).ok());
  ASSERT_TRUE((*stream)->run(work).ok());
  EXPECT_EQ(std::count(y.begin(), y.end(), 2 * half), static_cast<int64_t>(kLong - 1));
}

TEST_F(Probe, HashCoversTheSources) {
  EXPECT_TRUE(kernel_->report().code_hash.starts_with("sha256:"));
  EXPECT_EQ(kernel_->report().code_hash.size(), 7u + 64u);
}

TEST(HostDevice, MemoryStartsPoisonedAndIsBounded) {
  auto device = open("host");
  auto memory = device->allocate(1000);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->ptr()) % 256, 0u);
  uint8_t bytes[1000] = {};
  ASSERT_TRUE(device->download(bytes, memory->ptr(), 1000).ok());
  for (const uint8_t byte : bytes) {
    ASSERT_EQ(byte, 0xff);
  }
  const auto space = device->memory_free_total();
  ASSERT_TRUE(space.ok());
  const auto huge = device->allocate(space->second + 1);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().kind, ErrorKind::kUnfit);
  EXPECT_FALSE(device->allocate(-1).ok());
  EXPECT_TRUE(device->allocate(0).ok());
  { const Memory dropped = std::move(memory).value(); }
  EXPECT_EQ(device->memory_free_total()->first, space->second);
}

TEST(HostDevice, NamesAndArchitectures) {
  EXPECT_EQ(open("host")->info().id, "host:0");
  EXPECT_EQ(open("host")->info().arch, "sm_80");
  EXPECT_EQ(open("host:2@sm_90a")->info().id, "host:2@sm_90a");
  EXPECT_EQ(open("host@sm_90a")->info().sm_count, 132);
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    EXPECT_EQ(open(std::string("host:1@") + arch)->info().arch, arch);
  }
  for (const char* bad : {"", "host:x", "host:-1", "hostile", "host@sm_1", "cuda:", "gpu"}) {
    const auto device = open_device(bad, {});
    ASSERT_FALSE(device.ok()) << bad;
    EXPECT_EQ(device.error().kind, ErrorKind::kInvalid) << bad << ": " << device.error().message;
  }
  EXPECT_EQ(open_device("host:64", {}).error().kind, ErrorKind::kUnfit);
}

TEST(KernelText, ClosureAndLists) {
  const auto closure = kernel_source_closure("probe/probe.h");
  std::vector<std::string_view> paths;
  for (const KernelSource* source : closure) {
    paths.push_back(source->path);
  }
  const auto has = [&](std::string_view path) { return std::count(paths.begin(), paths.end(), path) == 1; };
  EXPECT_TRUE(has("probe/probe.h") && has("probe/args.h") && has("platform/platform.h") && has("platform/types.h"));
  EXPECT_FALSE(has("platform/host.h"));
  EXPECT_EQ(find_kernel_source("platform/host.h"), nullptr);
  EXPECT_TRUE(kernel_source_closure("nowhere.h").empty());
  ASSERT_NE(find_kernel_source("platform/types.h"), nullptr);
  EXPECT_NE(source_hash_text("probe/probe.h").find("struct bf16"), std::string::npos);

  ASSERT_EQ(listed_kernels().size(), host_instances().size());
  for (const ListedKernel& listed : listed_kernels()) {
    EXPECT_NE(find_host_instance(listed.header, listed.entry), nullptr) << listed.entry;
    EXPECT_NE(find_kernel_source(listed.header), nullptr) << listed.header;
  }
}

struct GemmShape {
  DType type_ab, type_c;
  int64_t m, n, k, batch;
  bool pointers;
};

class HostGemm : public ::testing::TestWithParam<GemmShape> {};

float value_of(DType type, const std::byte* p) {
  uint32_t word = 0;
  std::memcpy(&word, p, static_cast<size_t>(block_bytes(type)));
  const auto half = static_cast<uint16_t>(word);
  return type == DType::f32 ? bits_to_float(word) : type == DType::f16 ? to_float(f16{half}) : to_float(bf16{half});
}

std::vector<std::byte> random_values(DType type, int64_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * block_bytes(type)));
  std::uniform_real_distribution<float> draw(-1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const float x = draw(random);
    const uint32_t word = type == DType::f32 ? float_bits(x) : type == DType::f16 ? to_f16(x).bits : to_bf16(x).bits;
    std::memcpy(&bytes[i * block_bytes(type)], &word, static_cast<size_t>(block_bytes(type)));
  }
  return bytes;
}

TEST_P(HostGemm, MatchesAPlainLoop) {
  const GemmShape s = GetParam();
  std::mt19937 random(7);
  auto device = open("host");
  GemmCall call{s.type_ab, s.type_c, false, s.m, s.n, s.k, s.k + 3, s.k + 1, s.m + 2, s.batch};
  call.stride_a = call.lda * s.m + 5;
  call.stride_b = call.ldb * s.n;
  call.stride_c = call.ldc * s.n;
  const auto a = random_values(s.type_ab, call.stride_a * s.batch, random);
  const auto b = random_values(s.type_ab, call.stride_b * s.batch, random);
  const int size_ab = block_bytes(s.type_ab), size_c = block_bytes(s.type_c);
  auto da = device->allocate(static_cast<int64_t>(a.size())), db = device->allocate(static_cast<int64_t>(b.size()));
  auto dc = device->allocate(call.stride_c * s.batch * size_c), arrays = device->allocate(3 * s.batch * 8);
  ASSERT_TRUE(device->upload(da->ptr(), a.data(), da->bytes()).ok());
  ASSERT_TRUE(device->upload(db->ptr(), b.data(), db->bytes()).ok());
  call.a = da->ptr();
  call.b = db->ptr();
  call.c = dc->ptr();
  if (s.pointers) {
    std::vector<DevicePtr> pointers;
    for (int which = 0; which < 3; ++which) {
      for (int64_t e = 0; e < s.batch; ++e) {
        pointers.push_back(which == 0   ? call.a + e * call.stride_a * size_ab
                           : which == 1 ? call.b + e * call.stride_b * size_ab
                                        : call.c + e * call.stride_c * size_c);
      }
    }
    ASSERT_TRUE(device->upload(arrays->ptr(), pointers.data(), arrays->bytes()).ok());
    call.a = arrays->ptr();
    call.b = arrays->ptr() + s.batch * 8;
    call.c = arrays->ptr() + s.batch * 16;
    call.pointer_arrays = true;
  }
  auto stream = device->create_stream();
  const auto status = (*stream)->run(call);
  ASSERT_TRUE(status.ok()) << status.error().message;
  std::vector<std::byte> c(static_cast<size_t>(dc->bytes()));
  ASSERT_TRUE(device->download(c.data(), dc->ptr(), dc->bytes()).ok());
  const double tolerance = s.type_c == DType::f32 ? 1e-5 : s.type_c == DType::f16 ? 1e-3 : 8e-3;
  for (int64_t e = 0; e < s.batch; ++e) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t i = 0; i < s.m; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          sum += double{value_of(s.type_ab, &a[(e * call.stride_a + i * call.lda + k) * size_ab])} *
                 value_of(s.type_ab, &b[(e * call.stride_b + j * call.ldb + k) * size_ab]);
        }
        const float got = value_of(s.type_c, &c[(e * call.stride_c + j * call.ldc + i) * size_c]);
        ASSERT_NEAR(got, sum, tolerance * (1 + std::fabs(sum))) << "entry " << e << " row " << i << " column " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, HostGemm,
                         ::testing::Values(GemmShape{DType::f32, DType::f32, 65, 67, 530, 1, false},
                                           GemmShape{DType::f16, DType::f32, 33, 1, 64, 3, false},
                                           GemmShape{DType::f16, DType::f16, 5, 7, 31, 2, true},
                                           GemmShape{DType::bf16, DType::f32, 128, 70, 100, 1, true},
                                           GemmShape{DType::bf16, DType::bf16, 1, 3, 9, 4, false},
                                           GemmShape{DType::f32, DType::f32, 3, 2, 0, 1, false}));

TEST(HostGemmLimits, BadCallsAreErrors) {
  auto device = open("host");
  auto stream = device->create_stream();
  EXPECT_TRUE((*stream)->run(GemmCall{.m = 0, .n = 4, .k = 4, .lda = 4, .ldb = 4}).ok());
  EXPECT_FALSE((*stream)->run(GemmCall{.m = 2, .n = 4, .k = 4, .lda = 3, .ldb = 4, .ldc = 2}).ok());
  EXPECT_FALSE((*stream)->run(GemmCall{.type_ab = DType::q4_0, .m = 0, .n = 4, .k = 4, .lda = 4, .ldb = 4}).ok());
}

}  // namespace
}  // namespace cudabk
