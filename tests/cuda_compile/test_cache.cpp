// The cache of compiled kernels: damage, sharing, eviction.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/file.h"
#include "cuda_compile/scratch_folder.h"
#include "device/cuda/compile.h"
#include "probe/primitives_args.h"

namespace cudabk {
namespace {

namespace fs = std::filesystem;

const KernelKey kKey{"probe/primitives.h", "probe_async<16>", sizeof(ProbeMoveArgs)};
constexpr std::string_view kArch = "sm_80";

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(folder)) {
    if (item.path().extension() == ".cubin") {
      found.push_back(item.path());
    }
  }
  return found;
}

int64_t total_bytes(const fs::path& folder) {
  int64_t total = 0;
  for (const fs::path& path : entries(folder)) {
    total += static_cast<int64_t>(fs::file_size(path));
  }
  return total;
}

CompiledKernel compile(KernelCompiler& compiler) {
  auto kernel = compiler.compile(kKey, kArch);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  return kernel.ok() ? std::move(kernel).value() : CompiledKernel();
}

// Two compilations differ in names that the compiler makes up, never in code.
void expect_same_code(const CompiledKernel& a, const CompiledKernel& b) {
  EXPECT_EQ(a.lowered_name, b.lowered_name);
  EXPECT_EQ(a.report.registers, b.report.registers);
  EXPECT_EQ(a.report.local_bytes, b.report.local_bytes);
  EXPECT_EQ(a.report.code_hash, b.report.code_hash);
}

TEST(Cache, SecondCompilerFindsWhatTheFirstWrote) {
  const ScratchFolder folder;
  KernelCompiler first({folder.text()}), second({folder.text()});
  const CompiledKernel made = compile(first);
  EXPECT_FALSE(made.report.from_cache);
  const CompiledKernel found = compile(second);
  EXPECT_TRUE(found.report.from_cache);
  EXPECT_EQ(found.report.compile_ms, 0);
  EXPECT_TRUE(made.cubin == found.cubin);
  expect_same_code(made, found);
  const auto looked_up = second.cached(kKey, kArch);
  ASSERT_TRUE(looked_up.ok() && looked_up->has_value());
  const auto absent = second.cached(kKey, "sm_86");
  ASSERT_TRUE(absent.ok());
  EXPECT_FALSE(absent->has_value());
}

TEST(Cache, AVariantCompiledByNameAloneServesRequestsThatKnowTheArguments) {
  const ScratchFolder folder;
  KernelCompiler ahead({folder.text()}), later({folder.text()});
  ASSERT_TRUE(ahead.compile({kKey.header, kKey.entry, 0}, kArch).ok());
  EXPECT_TRUE(compile(later).report.from_cache);
  KernelKey wrong = kKey;
  wrong.args_bytes += 8;
  for (const Status& refused :
       {Status(later.compile(wrong, kArch).error()), Status(later.cached(wrong, kArch).error())}) {
    EXPECT_NE(refused.error().message.find("host and device disagree"), std::string::npos) << refused.error().message;
  }
}

TEST(Cache, DamagedEntriesAreCompiledAgainAndRepaired) {
  const ScratchFolder folder;
  KernelCompiler compiler({folder.text()});
  const CompiledKernel made = compile(compiler);
  const auto files = entries(folder.path());
  ASSERT_EQ(files.size(), 1u);
  const std::string whole = read_file(files[0]).value();
  std::vector<std::string> damaged = {"",
                                      "x",
                                      whole.substr(0, 20),
                                      whole.substr(0, whole.size() / 2),
                                      whole.substr(0, whole.size() - 1),
                                      whole + "x",
                                      std::string(whole.size(), '\0')};
  for (const size_t at : {size_t{0}, size_t{16}, size_t{90}, whole.size() / 2, whole.size() - 1}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 0x20;
  }
  for (size_t i = 0; i < damaged.size(); ++i) {
    ASSERT_TRUE(write_file_atomic(files[0], damaged[i]).ok());
    const CompiledKernel again = compile(compiler);
    EXPECT_FALSE(again.report.from_cache) << "damage " << i;
    expect_same_code(made, again);
    EXPECT_TRUE(compile(compiler).report.from_cache) << "not repaired after damage " << i;
  }
}

TEST(Cache, AnotherSourceIsAnotherEntry) {
  const ScratchFolder folder;
  const auto text_of = [](int factor) {
    return "#include \"platform/platform.h\"\nnamespace cudabk { struct A { float* y; };\n"
           "template <int N> KERNEL(scaled, N)(A a) { a.y[thread_x()] *= " +
           std::to_string(factor) + "; } }\n";
  };
  const std::string two = text_of(2), three = text_of(3);
  const KernelKey key{"own/scaled.h", "scaled<32>", 8};
  std::vector<std::string> hashes;
  for (const std::string* text : {&two, &three, &two}) {
    std::vector<KernelSource> sources(kernel_sources().begin(), kernel_sources().end());
    sources.push_back({"own/scaled.h", *text});
    KernelCompiler compiler({folder.text()}, sources);
    const auto kernel = compiler.compile(key, kArch);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->report.from_cache, hashes.size() == 2);
    hashes.push_back(kernel->report.code_hash);
  }
  EXPECT_NE(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(entries(folder.path()).size(), 2u);
}

TEST(Cache, TwoThreadsCompileTheSameKernel) {
  const ScratchFolder folder;
  KernelCompiler one({folder.text()}), two({folder.text()});  // as two processes would
  CompiledKernel a, b;
  std::thread other([&] { b = compile(two); });
  a = compile(one);
  other.join();
  expect_same_code(a, b);
  EXPECT_EQ(entries(folder.path()).size(), 1u);
  EXPECT_TRUE(compile(one).report.from_cache);
}

CompiledKernel made_up(size_t bytes, char fill) {
  CompiledKernel kernel;
  kernel.cubin = std::string(bytes, fill);
  kernel.lowered_name = "name";
  kernel.report.code_hash = "sha256:0";
  return kernel;
}

TEST(Cache, TheLeastRecentlyUsedEntriesGoFirst) {
  const ScratchFolder folder;
  CubinCache cache(folder.path(), 100'000);
  for (char c = 'a'; c <= 'h'; ++c) {  // 8 x 10 kB
    ASSERT_TRUE(cache.insert(std::string(1, c), made_up(10'000, c)).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // distinct times of use
  }
  EXPECT_EQ(entries(folder.path()).size(), 8u);
  ASSERT_TRUE(cache.find("a").has_value());  // now the most recent
  for (const char c : {'i', 'j', 'k'}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(cache.insert(std::string(1, c), made_up(10'000, c)).ok());
  }
  EXPECT_LE(total_bytes(folder.path()), 100'000);
  EXPECT_TRUE(cache.find("a").has_value());
  EXPECT_FALSE(cache.find("b").has_value());
  EXPECT_TRUE(cache.find("k").has_value());
}

TEST(Cache, AnEntryLargerThanTheLimitIsKeptAlone) {
  const ScratchFolder folder;
  CubinCache cache(folder.path(), 1000);
  ASSERT_TRUE(cache.insert("small", made_up(500, 's')).ok());
  ASSERT_TRUE(cache.insert("large", made_up(5000, 'l')).ok());
  EXPECT_TRUE(cache.find("large").has_value());
  EXPECT_FALSE(cache.find("small").has_value());
}

TEST(Cache, ManyWritersStayWithinTheLimit) {
  const ScratchFolder folder;
  constexpr int64_t kLimit = 60'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&folder, t] {
      CubinCache cache(folder.path(), kLimit);
      for (int i = 0; i < 25; ++i) {
        const std::string key = std::to_string((t * 7 + i) % 40);
        EXPECT_TRUE(cache.insert(key, made_up(4'000, static_cast<char>('a' + i))).ok());
        if (const auto found = cache.find(key)) {
          EXPECT_EQ(found->cubin.size(), 4'000u);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(total_bytes(folder.path()), kLimit);
  CubinCache cache(folder.path(), kLimit);
  const auto cleared = cache.clear();
  ASSERT_TRUE(cleared.ok());
  EXPECT_GT(*cleared, 0);
  EXPECT_TRUE(entries(folder.path()).empty());
}

TEST(Cache, NoFolderNoCache) {
  KernelCompiler compiler(CompileOptions{});
  EXPECT_EQ(compiler.cache(), nullptr);
  EXPECT_FALSE(compile(compiler).report.from_cache);
  EXPECT_FALSE(compile(compiler).report.from_cache);
}

TEST(Cache, AFolderThatCannotBeWrittenOnlyWarns) {
  KernelCompiler compiler({"/proc/cudabk"});
  EXPECT_FALSE(compile(compiler).report.from_cache);
}

}  // namespace
}  // namespace cudabk
