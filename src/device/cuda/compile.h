// Compiling kernel variants for any architecture, with or without a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "device/cuda/cubin_cache.h"
#include "device/device.h"
#include "kernel_text.h"

namespace cudabk {

class KernelPrograms;
class Nvrtc;

// Architecture names as compiled for: the feature-complete "a" form where one exists. 90 -> "sm_90a".
std::string arch_of_compute_capability(int cc);

struct CompileOptions {
  std::string cache_dir;  // empty: nothing is kept
  int64_t cache_limit_bytes = 1LL << 30;
  std::string toolkit_dir;  // where libnvrtc is looked for besides the loader's path; may be empty
};

// The architectures that every variant must compile for.
inline constexpr std::string_view kArchitectures[] = {"sm_75",  "sm_80",   "sm_86",  "sm_89",
                                                      "sm_90a", "sm_100a", "sm_120a"};

// Compiles variants of a set of kernel sources, through the cache. Thread-safe.
class KernelCompiler {
 public:
  // NVRTC is opened at the first use. `sources` outlive the compiler.
  explicit KernelCompiler(CompileOptions options, std::span<const KernelSource> sources = kernel_sources());
  ~KernelCompiler();

  // From the cache, or compiled now (blocks, 0.1 to 0.6 s) and kept there. kUnfit without NVRTC; kInternal with the
  // variant, the architecture and the compiler's log when it does not compile.
  Result<CompiledKernel> compile(const KernelKey& key, std::string_view arch);
  // Only from the cache; empty when it is not there. Both compare the key's args_bytes with what the kernel takes.
  Result<std::optional<CompiledKernel>> cached(const KernelKey& key, std::string_view arch);

  // Version of NVRTC, "13.0"; kUnfit without it.
  Result<std::string> compiler_version();
  CubinCache* cache() { return cache_.get(); }  // nullptr when disabled

 private:
  Result<const Nvrtc*> nvrtc();

  CompileOptions options_;
  std::unique_ptr<KernelPrograms> programs_;
  std::unique_ptr<CubinCache> cache_;
  std::mutex mutex_;  // opening NVRTC
  std::unique_ptr<Nvrtc> nvrtc_;
};

}  // namespace cudabk
