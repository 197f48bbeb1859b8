// Every method of a CUDA device.
#include <gtest/gtest.h>

#include "cuda_device/gpu.h"
#include "cuda_device/numbers.h"
#include "probe/args.h"
#include "probe/primitives_args.h"

namespace cudabk {
namespace {

TEST_F(Gpu, InfoIsComplete) {
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "cuda:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.cc, 75);
  EXPECT_TRUE(info.arch.starts_with("sm_" + std::to_string(info.cc))) << info.arch;
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GT(info.l2_bytes, 0);
  EXPECT_GT(info.memory_bytes, int64_t{1} << 30);
  EXPECT_GE(info.max_shared_bytes, 48 * 1024);
  EXPECT_GT(info.driver_version, 12000);
  EXPECT_TRUE(info.uuid.starts_with("GPU-"));
  EXPECT_EQ(info.uuid.size(), 40u);
  EXPECT_FALSE(info.emulated);
}

TEST_F(Gpu, MemoryMovesAndFills) {
  std::vector<uint8_t> values(100'003);
  for (uint8_t& value : values) {
    value = static_cast<uint8_t>(random());
  }
  const Memory memory = to_device(values);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.ptr()) % 256, 0u);
  EXPECT_EQ(to_host<uint8_t>(memory), values);
  ASSERT_TRUE(device->fill(memory.ptr() + 5, 0xab, 1000).ok());
  std::fill_n(values.begin() + 5, 1000, 0xab);
  EXPECT_EQ(to_host<uint8_t>(memory), values);
  auto empty = device->allocate(0);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->ptr(), nullptr);
}

TEST_F(Gpu, OutOfMemoryNamesTheSizes) {
  const auto before = device->memory_free_total();
  ASSERT_TRUE(before.ok());
  const auto memory = device->allocate(before->second * 2);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().kind, ErrorKind::kUnfit);
  EXPECT_NE(memory.error().message.find("asked for"), std::string::npos) << memory.error().message;
  EXPECT_NE(memory.error().message.find("free of"), std::string::npos);
  EXPECT_TRUE(device->synchronize().ok());  // nothing sticks
  EXPECT_TRUE(device->allocate(1024).ok());
}

TEST_F(Gpu, FreedMemoryComesBack) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  const auto before = device->memory_free_total();
  {
    auto memory = device->allocate(kBytes);
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    EXPECT_LE(device->memory_free_total()->first, before->first - kBytes);
  }
  EXPECT_EQ(device->memory_free_total()->first, before->first);
}

TEST_F(Gpu, KernelsAreLoadedOnceAndReported) {
  const KernelKey key{"probe/probe.h", "probe<256>", sizeof(ProbeArgs)};
  const KernelKey other{"probe/probe.h", "probe<32>", sizeof(ProbeArgs)};
  const std::vector<KernelKey> keys{key, other, key};
  const Status prepared = device->prepare(keys);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  const auto first = device->kernel(key), second = device->kernel(key);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ((*first)->key(), key);
  EXPECT_GT((*first)->report().registers, 0);
  EXPECT_TRUE((*first)->report().code_hash.starts_with("sha256:"));
}

TEST_F(Gpu, PrepareTriesAllAndReturnsTheFirstError) {
  const KernelKey good{"probe/probe.h", "probe<64>", sizeof(ProbeArgs)};
  const KernelKey bad{"probe/probe.h", "absent<64>", 0};
  const std::vector<KernelKey> keys{bad, good};
  const Status prepared = device->prepare(keys);
  ASSERT_FALSE(prepared.ok());
  EXPECT_NE(prepared.error().message.find("absent<64>"), std::string::npos) << prepared.error().message;
  EXPECT_TRUE(device->kernel(good).ok());
}

TEST_F(Gpu, StreamRunsInOrderAndEventsMeasure) {
  constexpr int kCount = 100'000;
  const std::vector<float> x(kCount, 2.0f);
  const Memory dx = to_device(x), dy = to_device(std::vector<float>(kCount));
  const Kernel* kernel = load("probe/probe.h", "probe<256>", sizeof(ProbeArgs));
  ASSERT_NE(kernel, nullptr);
  auto begin = device->create_event(), end = device->create_event();
  ASSERT_TRUE(begin.ok() && end.ok());
  ASSERT_TRUE(stream->record(**begin).ok());
  ASSERT_TRUE(stream->run(FillCall{dy.ptr(), 0xff, dy.bytes()}).ok());
  const uint32_t blocks = (kCount + 255) / 256;
  const KernelLaunch there =
      make_launch(kernel, ProbeArgs{as<float>(dx), as<float>(dy), kCount, 3.0f}, blocks, 256, 256 * sizeof(float));
  const KernelLaunch back =
      make_launch(kernel, ProbeArgs{as<float>(dy), as<float>(dx), kCount, 0.5f}, blocks, 256, 256 * sizeof(float));
  ASSERT_TRUE(stream->run(there).ok());
  ASSERT_TRUE(stream->run(back).ok());
  ASSERT_TRUE(stream->record(**end).ok());
  const auto elapsed = (*end)->elapsed_ns(**begin);
  ASSERT_TRUE(elapsed.ok()) << elapsed.error().message;
  EXPECT_GT(*elapsed, 1e3);
  EXPECT_LT(*elapsed, 1e9);
  EXPECT_EQ(to_host<float>(dy), std::vector<float>(kCount, 6.0f));
  EXPECT_EQ(to_host<float>(dx), std::vector<float>(kCount, 3.0f));
  EXPECT_NE(stream->native(), nullptr);
}

TEST_F(Gpu, StreamsCopyInOrderAndWaitForEachOther) {
  constexpr int kCount = 1 << 20, kBytes = kCount * 4;
  const Memory dx = to_device(std::vector<float>(kCount)), dy = to_device(std::vector<float>(kCount));
  auto other = device->create_stream();
  auto done = device->create_event();
  auto from = device->allocate_pinned(kBytes), to = device->allocate_pinned(kBytes);
  ASSERT_TRUE(other.ok() && done.ok() && from.ok() && to.ok());
  ASSERT_TRUE((*done)->synchronize().ok());  // never recorded: nothing to wait for
  for (int i = 0; i < kCount; ++i) {
    reinterpret_cast<float*>(from->get())[i] = static_cast<float>(i);
  }
  const Kernel* kernel = load("probe/probe.h", "probe<256>", sizeof(ProbeArgs));
  ASSERT_NE(kernel, nullptr);
  ASSERT_TRUE(stream->upload(dx.ptr(), from->get(), kBytes).ok());
  for (int i = 0; i < 50; ++i) {  // so that the other stream would read too early
    ASSERT_TRUE(
        stream->run(make_launch(kernel, ProbeArgs{as<float>(dx), as<float>(dy), kCount, 2.0f}, kCount / 256, 256, 1024))
            .ok());
  }
  ASSERT_TRUE(stream->record(**done).ok());
  ASSERT_TRUE((*other)->wait(**done).ok());
  ASSERT_TRUE((*other)->copy(dx.ptr(), dy.ptr(), kBytes).ok());
  ASSERT_TRUE((*other)->download(to->get(), dx.ptr(), kBytes).ok());
  ASSERT_TRUE((*other)->record(**done).ok());
  ASSERT_TRUE((*done)->synchronize().ok());
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(reinterpret_cast<const float*>(to->get())[i], 2.0f * static_cast<float>(i)) << "element " << i;
  }
}

TEST_F(Gpu, UploadWaitsForEarlierWork) {
  constexpr int kCount = 1 << 20;
  const Memory dx = to_device(std::vector<float>(kCount, 1.0f)), dy = to_device(std::vector<float>(kCount));
  const Kernel* kernel = load("probe/probe.h", "probe<256>", sizeof(ProbeArgs));
  ASSERT_NE(kernel, nullptr);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        stream->run(make_launch(kernel, ProbeArgs{as<float>(dx), as<float>(dy), kCount, 1.0f}, kCount / 256, 256, 1024))
            .ok());
  }
  const std::vector<float> zeros(kCount, 0.0f);
  ASSERT_TRUE(device->upload(dx.ptr(), zeros.data(), dx.bytes()).ok());
  EXPECT_EQ(to_host<float>(dy), std::vector<float>(kCount, 1.0f));
}

TEST_F(Gpu, WrongLaunchesAreErrorsThatNameTheLaunch) {
  const Kernel* kernel = load("probe/probe.h", "probe<256>", sizeof(ProbeArgs));
  ASSERT_NE(kernel, nullptr);
  const KernelLaunch right = make_launch(kernel, ProbeArgs{nullptr, nullptr, 0, 1.0f}, 1, 256, 1024);
  std::vector<KernelLaunch> wrong(6, right);
  wrong[0].block = {2048, 1, 1};
  wrong[1].grid = {1, 65536, 1};
  wrong[2].grid = {0, 1, 1};
  wrong[3].shared_bytes = static_cast<uint32_t>(device->info().max_shared_bytes) + 1;
  wrong[4].args.resize(3);
  wrong[5].block = {512, 1, 1};  // more than its launch bounds: the driver refuses
  for (size_t i = 0; i < wrong.size(); ++i) {
    const Status ran = stream->run(wrong[i]);
    ASSERT_FALSE(ran.ok()) << i;
    EXPECT_NE(ran.error().message.find("probe<256> grid "), std::string::npos) << ran.error().message;
    EXPECT_FALSE(device->build_graph(std::vector<Work>{wrong[i]}).ok() && i != 5) << i;
  }
  KernelLaunch none = right;
  none.kernel = nullptr;
  EXPECT_FALSE(stream->run(none).ok());
  EXPECT_TRUE(stream->run(right).ok());  // no error sticks
  EXPECT_TRUE(stream->synchronize().ok());
}

TEST_F(Gpu, SharedMemoryUpToTheOptInLimit) {
  const Kernel* kernel = load("probe/probe.h", "probe<256>", sizeof(ProbeArgs));
  ASSERT_NE(kernel, nullptr);
  const Memory dx = to_device(std::vector<float>(256, 4.0f)), dy = to_device(std::vector<float>(256));
  run(make_launch(kernel, ProbeArgs{as<float>(dx), as<float>(dy), 256, 0.5f}, 1, 256,
                  static_cast<uint32_t>(device->info().max_shared_bytes)));
  EXPECT_EQ(to_host<float>(dy), std::vector<float>(256, 2.0f));
}

// Products in every form the interface offers.
class Gemm : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    const Status available = device->gemm_available();
    if (!available.ok()) {
      GTEST_SKIP() << available.error().message;
    }
  }

  // Small whole numbers: exact in every type.
  std::vector<float> numbers(size_t count) {
    std::uniform_int_distribution<int> small(-4, 4);
    std::vector<float> values(count);
    for (float& value : values) {
      value = static_cast<float>(small(random));
    }
    return values;
  }

  Memory upload_as(DType type, const std::vector<float>& values) {
    if (type == DType::f32) {
      return to_device(values);
    }
    std::vector<uint16_t> bits;
    for (const float value : values) {
      bits.push_back(type == DType::f16 ? f16_bits(value) : bf16_bits(value));
    }
    return to_device(bits);
  }

  std::vector<float> download_as(DType type, const Memory& memory) {
    if (type == DType::f32) {
      return to_host<float>(memory);
    }
    std::vector<float> values;
    for (const uint16_t bits : to_host<uint16_t>(memory)) {
      values.push_back(type == DType::f16 ? f16_value(bits) : bf16_value(bits));
    }
    return values;
  }
};

std::vector<float> product(const GemmCall& call, const std::vector<float>& a, const std::vector<float>& b,
                           size_t result_size) {
  std::vector<float> c(result_size, 0.0f);
  for (int64_t s = 0; s < call.batch; ++s) {
    for (int64_t j = 0; j < call.n; ++j) {
      for (int64_t i = 0; i < call.m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < call.k; ++l) {
          sum += double{a[s * call.stride_a + i * call.lda + l]} * b[s * call.stride_b + j * call.ldb + l];
        }
        c[s * call.stride_c + j * call.ldc + i] = static_cast<float>(sum);
      }
    }
  }
  return c;
}

TEST_F(Gemm, EveryTypeAndBatchForm) {
  struct Types {
    DType ab, c;
  };
  for (const auto& [ab, c] :
       {Types{DType::f32, DType::f32}, Types{DType::f16, DType::f32}, Types{DType::f16, DType::f16},
        Types{DType::bf16, DType::f32}, Types{DType::bf16, DType::bf16}}) {
    for (const int64_t batch : {1, 3}) {
      GemmCall call;
      call.type_ab = ab;
      call.type_c = c;
      call.m = 40, call.n = 24, call.k = 16;
      call.lda = 24, call.ldb = 16, call.ldc = 48;
      call.batch = batch;
      call.stride_a = call.m * call.lda, call.stride_b = call.n * call.ldb, call.stride_c = call.n * call.ldc;
      const auto a = numbers(batch * call.stride_a), b = numbers(batch * call.stride_b);
      const size_t result_size = static_cast<size_t>(batch * call.stride_c);
      const Memory da = upload_as(ab, a), db = upload_as(ab, b);
      const std::vector<float> expected = product(call, a, b, result_size);
      for (const bool pointers : {false, true}) {
        const Memory dc = upload_as(c, std::vector<float>(result_size, 0.0f));
        std::vector<DevicePtr> pa, pb, pc;
        const int64_t size_ab = block_bytes(ab), size_c = block_bytes(c);
        for (int64_t s = 0; s < batch; ++s) {
          pa.push_back(da.ptr() + s * call.stride_a * size_ab);
          pb.push_back(db.ptr() + s * call.stride_b * size_ab);
          pc.push_back(dc.ptr() + s * call.stride_c * size_c);
        }
        const Memory dpa = to_device(pa), dpb = to_device(pb), dpc = to_device(pc);
        call.pointer_arrays = pointers;
        call.a = pointers ? dpa.ptr() : da.ptr();
        call.b = pointers ? dpb.ptr() : db.ptr();
        call.c = pointers ? dpc.ptr() : dc.ptr();
        run(call);
        EXPECT_EQ(download_as(c, dc), expected) << dtype_traits(ab).name << " -> " << dtype_traits(c).name << " batch "
                                                << batch << (pointers ? " pointers" : " strides");
      }
    }
  }
}

TEST_F(Gemm, SumsAreKeptInF32) {
  // 4096 products of 4.5 * 4.5 = 20.25: the sum, 82944, is beyond f16.
  GemmCall call;
  call.type_ab = DType::f16;
  call.m = call.n = 8, call.k = 4096;
  call.lda = call.ldb = 4096, call.ldc = 8;
  const Memory da = upload_as(DType::f16, std::vector<float>(8 * 4096, 4.5f));
  const Memory dc = to_device(std::vector<float>(64));
  call.a = call.b = da.ptr();
  call.c = dc.ptr();
  run(call);
  EXPECT_EQ(to_host<float>(dc), std::vector<float>(64, 82944.0f));
}

TEST_F(Gemm, IllegalCallsAreErrors) {
  GemmCall call;
  call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 8;
  call.type_ab = DType::q4_K;
  EXPECT_EQ(stream->run(call).error().kind, ErrorKind::kInvalid);
  call.type_ab = DType::f16;
  call.type_c = DType::bf16;
  EXPECT_EQ(stream->run(call).error().kind, ErrorKind::kInvalid);
  call.type_c = DType::f32;
  call.lda = 4;  // less than k
  const Status ran = stream->run(call);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("m=8 n=8 k=8"), std::string::npos) << ran.error().message;
  call.n = 0;
  EXPECT_TRUE(stream->run(call).ok());
  EXPECT_TRUE(stream->synchronize().ok());
}

}  // namespace
}  // namespace cudabk
