// Compiling kernels with NVRTC, without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/kernel_sweep.h"
#include "cuda_compile/scratch_folder.h"
#include "device/cuda/compile.h"
#include "device/cuda/cubin.h"
#include "device/cuda/cuda_device.h"
#include "probe/primitives_args.h"

namespace cudabk {
namespace {

constexpr const char* kHeader = "probe/primitives.h";

// The embedded sources and some more.
std::vector<KernelSource> sources_with(std::vector<KernelSource> more) {
  const auto embedded = kernel_sources();
  more.insert(more.end(), embedded.begin(), embedded.end());
  return more;
}

// Every primitive occurs in one of these.
std::vector<KernelKey> primitive_kernels() {
  std::vector<KernelKey> keys;
  const auto add = [&keys](std::string entry, size_t bytes) {
    keys.push_back({kHeader, std::move(entry), static_cast<uint32_t>(bytes)});
  };
  for (const char* form : {"kF16x16x8x16", "kF16x16x8x8", "kS8x16x8x32", "kS8x16x8x16", "kS8x8x8x16"}) {
    add(std::string("probe_mma<MmaForm::") + form + ">", sizeof(ProbeMmaArgs));
  }
  for (const char* entry :
       {"probe_ldmatrix<1, false>", "probe_ldmatrix<2, true>", "probe_ldmatrix<4, false>", "probe_ldmatrix<4, true>",
        "probe_async<4>", "probe_async<8>", "probe_async<16>", "probe_move<uint8_t>", "probe_move<f16>",
        "probe_move<float>", "probe_move<f32x2>", "probe_move<u32x4>"}) {
    add(entry, sizeof(ProbeMoveArgs));
  }
  add("probe_values<64>", sizeof(ProbeValuesArgs));
  add("probe_warp<128>", sizeof(ProbeWarpArgs));
  add("probe_overlap<true>", sizeof(ProbeOverlapArgs));
  return keys;
}

class CompileArch : public testing::TestWithParam<std::string_view> {};

TEST_P(CompileArch, EveryPrimitiveCompilesWithoutSpills) {
  KernelCompiler compiler(CompileOptions{});
  for (const KernelKey& key : primitive_kernels()) {
    const auto kernel = compiler.compile(key, GetParam());
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_GT(kernel->report.registers, 0) << key.entry;
    EXPECT_EQ(kernel->report.spill_store_bytes + kernel->report.spill_load_bytes, 0) << key.entry;
    EXPECT_GT(kernel->report.compile_ms, 0);
    EXPECT_TRUE(kernel->report.code_hash.starts_with("sha256:"));
    const auto parameters = parameter_bytes(kernel->cubin, kernel->lowered_name);
    ASSERT_TRUE(parameters.ok()) << parameters.error().message;
    EXPECT_EQ(*parameters, key.args_bytes) << key.entry;
    EXPECT_NE(kernel->lowered_name.find(key.entry.substr(0, key.entry.find('<'))), std::string::npos);
  }
}

TEST_P(CompileArch, Bf16TensorCoresNeedSm80) {
  KernelCompiler compiler(CompileOptions{});
  const KernelKey key{kHeader, "probe_mma<MmaForm::kBf16x16x8x16>", sizeof(ProbeMmaArgs)};
  const auto kernel = compiler.compile(key, GetParam());
  if (GetParam() == "sm_75") {
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("need sm_80"), std::string::npos) << kernel.error().message;
  } else {
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompileArch, testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

TEST(Compile, ArgumentStructOfAnotherSizeIsAnError) {
  KernelCompiler compiler(CompileOptions{});
  const auto kernel = compiler.compile({kHeader, "probe_values<64>", sizeof(ProbeValuesArgs) + 8}, "sm_80");
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().message.find("host and device disagree"), std::string::npos) << kernel.error().message;
  EXPECT_NE(kernel.error().message.find("probe_values<64>"), std::string::npos);
  EXPECT_NE(kernel.error().message.find("sm_80"), std::string::npos);
}

TEST(Compile, UnknownHeaderAndUnknownEntry) {
  KernelCompiler compiler(CompileOptions{});
  const auto no_header = compiler.compile({"probe/none.h", "none<1>", 0}, "sm_80");
  ASSERT_FALSE(no_header.ok());
  EXPECT_EQ(no_header.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(no_header.error().message.find("probe/none.h"), std::string::npos);
  const auto no_entry = compiler.compile({kHeader, "probe_nothing<1>", 0}, "sm_80");
  ASSERT_FALSE(no_entry.ok());
  EXPECT_NE(no_entry.error().message.find("probe_nothing"), std::string::npos);
}

TEST(Compile, MissingIncludeNamesBothFiles) {
  const auto sources = sources_with({{"own/outer.h", "#include \"own/gone.h\"\n"}});
  KernelCompiler compiler(CompileOptions{}, sources);
  const auto kernel = compiler.compile({"own/outer.h", "f<1>", 0}, "sm_80");
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().message.find("own/gone.h, included from own/outer.h"), std::string::npos)
      << kernel.error().message;
}

TEST(Compile, SpillsAreReported) {
  constexpr const char* kText = R"(
#pragma once
#include "platform/platform.h"
namespace cudabk {
struct Args { const float* x; float* y; };
template <int N> KERNEL_MIN_BLOCKS(spilling, 1024, 2)(Args a) {
  float v[N];
  for (int i = 0; i < N; ++i) v[i] = a.x[i * 1024 + thread_x()];
  block_sync();
  for (int j = 0; j < N; ++j)
    for (int i = 0; i < N; ++i) v[i] = v[i] * v[(i + j) % N] + v[j];
  for (int i = 0; i < N; ++i) a.y[i * 1024 + thread_x()] = v[i];
}
})";
  const auto sources = sources_with({{"own/spill.h", kText}});
  KernelCompiler compiler(CompileOptions{}, sources);
  const auto kernel = compiler.compile({"own/spill.h", "spilling<64>", 16}, "sm_80");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  EXPECT_LE(kernel->report.registers, 32);
  EXPECT_GT(kernel->report.spill_store_bytes, 0);
  EXPECT_GT(kernel->report.spill_load_bytes, 0);
  EXPECT_GT(kernel->report.local_bytes, 0);
}

// An array that is indexed with what is known at run time only lies in local memory; no spill is reported for it.
TEST(Compile, AnArrayOnTheStackIsReported) {
  constexpr const char* kText = R"(
#pragma once
#include "platform/platform.h"
namespace cudabk {
struct Args { const uint32_t* x; uint32_t* y; };
template <int N> KERNEL(on_stack, 32)(Args a) {
  uint32_t v[N];
  for (int i = 0; i < N; ++i) v[i] = a.x[i];
  for (uint32_t i = 0; i < a.x[N]; ++i) v[(v[i % N] + i) % N] += i;
  a.y[thread_x()] = v[a.x[N] % N];
}
})";
  const auto sources = sources_with({{"own/stack.h", kText}});
  KernelCompiler compiler(CompileOptions{}, sources);
  for (const std::string_view arch : kArchitectures) {
    const auto kernel = compiler.compile({"own/stack.h", "on_stack<40>", 16}, arch);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->report.local_bytes, 40 * 4) << arch;
    EXPECT_EQ(kernel->report.spill_store_bytes + kernel->report.spill_load_bytes, 0) << arch;
    VariantResult named;
    named.report = kernel->report;
    EXPECT_TRUE(named.keeps_array_on_stack() && named.is_defect() && !named.spills());
  }
}

TEST(Compile, WhichVariantsMayUseLocalMemory) {
  const auto is_defect = [](bool shipped, bool sampled, int local_bytes, int spilled) {
    VariantResult result;
    result.job.variant.shipped = shipped;
    result.job.variant.sampled = sampled;
    result.report.local_bytes = local_bytes;
    result.report.spill_store_bytes = spilled;
    return result.is_defect();
  };
  EXPECT_FALSE(is_defect(true, false, 0, 0));
  EXPECT_TRUE(is_defect(true, false, 8, 0));
  EXPECT_FALSE(is_defect(true, false, 24, 24));  // kept around a loop
  EXPECT_TRUE(is_defect(true, false, 28, 28));
  EXPECT_TRUE(is_defect(false, false, 8, 0));     // of an instance list
  EXPECT_FALSE(is_defect(false, false, 40, 40));  // which may spill
  EXPECT_FALSE(is_defect(false, true, 8, 0));     // a sample
}

TEST(Compile, EqualCodeHasEqualHash) {
  KernelCompiler compiler(CompileOptions{});
  const KernelKey key{kHeader, "probe_values<64>", sizeof(ProbeValuesArgs)};
  const auto a = compiler.compile(key, "sm_90a"), b = compiler.compile(key, "sm_90a");
  const auto other = compiler.compile({kHeader, "probe_values<128>", sizeof(ProbeValuesArgs)}, "sm_90a");
  ASSERT_TRUE(a.ok() && b.ok() && other.ok());
  EXPECT_EQ(a->report.code_hash, b->report.code_hash);
  EXPECT_NE(a->report.code_hash, other->report.code_hash);
}

TEST(Compile, BrokenElfFilesAreErrors) {
  KernelCompiler compiler(CompileOptions{});
  const auto kernel = compiler.compile({kHeader, "probe_values<64>", 0}, "sm_80");
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(machine_code_hash(kernel->cubin).ok());
  // The end of the file is its program header table, which the hash does not need.
  for (size_t size = 0; size < kernel->cubin.size() * 3 / 4; size += 97) {
    EXPECT_FALSE(machine_code_hash(kernel->cubin.substr(0, size)).ok()) << size;
    EXPECT_FALSE(parameter_bytes(kernel->cubin.substr(0, size), kernel->lowered_name).ok()) << size;
    EXPECT_FALSE(stack_bytes(kernel->cubin.substr(0, size), kernel->lowered_name).ok()) << size;
  }
  EXPECT_FALSE(machine_code_hash(std::string(4096, 'x')).ok());
  EXPECT_FALSE(parameter_bytes(kernel->cubin, "no_such_kernel").ok());
  EXPECT_FALSE(stack_bytes(kernel->cubin, "no_such_kernel").ok());
  EXPECT_FALSE(parse_compiler_log("nothing here").ok());
}

TEST(Compile, ArchitectureNames) {
  EXPECT_EQ(arch_of_compute_capability(75), "sm_75");
  EXPECT_EQ(arch_of_compute_capability(89), "sm_89");
  EXPECT_EQ(arch_of_compute_capability(90), "sm_90a");
  EXPECT_EQ(arch_of_compute_capability(100), "sm_100a");
  EXPECT_EQ(arch_of_compute_capability(120), "sm_120a");
}

TEST(Devices, CountingNeverFailsHard) {
  const auto count = count_cuda_devices();
  if (count.ok()) {
    EXPECT_GE(*count, 1);
    EXPECT_EQ(open_cuda_device(*count, {}).error().kind, ErrorKind::kUnfit);
  } else {
    EXPECT_EQ(count.error().kind, ErrorKind::kUnfit);
    EXPECT_TRUE(count.error().message.starts_with("no CUDA device: ")) << count.error().message;
    const auto device = open_cuda_device(0, {});
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().message, count.error().message);
  }
}

}  // namespace
}  // namespace cudabk
