#include "device/cuda/compile.h"

#include <fmt/format.h>

#include <chrono>

#include "core/log.h"
#include "device/cuda/cubin.h"
#include "device/cuda/kernel_program.h"
#include "device/cuda/nvrtc.h"

namespace cudabk {

namespace {

Result<CompiledKernel> compile_now(const Nvrtc& nvrtc, const Nvrtc::Input& input) {
  const auto start = std::chrono::steady_clock::now();
  CUDABK_ASSIGN(Nvrtc::Output output, nvrtc.compile(input));
  CompiledKernel kernel;
  CUDABK_ASSIGN(kernel.report, parse_compiler_log(output.log));
  CUDABK_ASSIGN(kernel.report.code_hash, machine_code_hash(output.cubin));
  CUDABK_ASSIGN(const uint32_t stack, stack_bytes(output.cubin, output.lowered_name));
  kernel.report.local_bytes = static_cast<int>(stack);
  kernel.report.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  kernel.cubin = std::move(output.cubin);
  kernel.lowered_name = std::move(output.lowered_name);
  return kernel;
}

// `cache` may be nullptr.
Result<CompiledKernel> cached_or_compiled(const Nvrtc& nvrtc, const Nvrtc::Input& input, CubinCache* cache) {
  if (cache == nullptr) {
    return compile_now(nvrtc, input);
  }
  const std::string key = KernelPrograms::cache_key(input, nvrtc.version());
  if (std::optional<CompiledKernel> found = cache->find(key)) {
    return std::move(*found);
  }
  Result<CompiledKernel> kernel = compile_now(nvrtc, input);
  if (kernel.ok()) {
    if (const Status kept = cache->insert(key, *kernel); !kept.ok()) {
      log_warning("kernel cache: {}", kept.error().message);
    }
  }
  return kernel;
}

// The size of the argument struct. It is no part of the program, so that a variant compiled ahead by name alone serves
// a request that knows the host's size too.
Status check_args(const KernelKey& key, const CompiledKernel& kernel) {
  if (key.args_bytes == 0) {
    return success();
  }
  CUDABK_ASSIGN(const uint32_t bytes, parameter_bytes(kernel.cubin, kernel.lowered_name));
  if (bytes != key.args_bytes) {
    return internal_error(
        fmt::format("argument struct: host and device disagree: {} and {} bytes", key.args_bytes, bytes));
  }
  return success();
}

}  // namespace

KernelCompiler::KernelCompiler(CompileOptions options, std::span<const KernelSource> sources)
    : options_(std::move(options)), programs_(std::make_unique<KernelPrograms>(sources)) {
  if (!options_.cache_dir.empty()) {
    cache_ = std::make_unique<CubinCache>(options_.cache_dir, options_.cache_limit_bytes);
  }
}

KernelCompiler::~KernelCompiler() = default;

Result<const Nvrtc*> KernelCompiler::nvrtc() {
  std::lock_guard lock(mutex_);
  if (nvrtc_ == nullptr) {
    CUDABK_ASSIGN(nvrtc_, Nvrtc::open(options_.toolkit_dir));
  }
  return nvrtc_.get();
}

Result<std::string> KernelCompiler::compiler_version() {
  CUDABK_ASSIGN(const Nvrtc* compiler, nvrtc());
  return compiler->version();
}

Result<CompiledKernel> KernelCompiler::compile(const KernelKey& key, std::string_view arch) {
  const auto context = [&] { return fmt::format("{} ({}) for {}", key.entry, key.header, arch); };
  CUDABK_ASSIGN(const Nvrtc* compiler, nvrtc());
  Result<Nvrtc::Input> input = programs_->program(key, arch);
  if (!input.ok()) {
    return std::move(input).error().with_context(context());
  }
  Result<CompiledKernel> kernel = cached_or_compiled(*compiler, *input, cache_.get());
  if (kernel.ok()) {
    if (Status checked = check_args(key, *kernel); !checked.ok()) {
      kernel = std::move(checked).error();
    }
  }
  if (!kernel.ok()) {
    return std::move(kernel).error().with_context(context());
  }
  return kernel;
}

Result<std::optional<CompiledKernel>> KernelCompiler::cached(const KernelKey& key, std::string_view arch) {
  if (!cache_) {
    return std::optional<CompiledKernel>();
  }
  CUDABK_ASSIGN(const Nvrtc* compiler, nvrtc());
  CUDABK_ASSIGN(const Nvrtc::Input input, programs_->program(key, arch));
  std::optional<CompiledKernel> found = cache_->find(KernelPrograms::cache_key(input, compiler->version()));
  if (found) {
    CUDABK_TRY(check_args(key, *found));
  }
  return found;
}

}  // namespace cudabk
