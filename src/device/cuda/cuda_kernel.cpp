// Loading of compiled variants, and what is checked before a launch.
#include <fmt/format.h>

#include "device/cuda/cuda_internal.h"

namespace cudabk {

Result<std::unique_ptr<CudaKernel>> CudaKernel::load(const KernelKey& key, const CompiledKernel& compiled) {
  std::unique_ptr<CudaKernel> kernel(new CudaKernel());
  kernel->key_ = key;
  kernel->report_ = compiled.report;
  CUDABK_TRY(cuda_check(
      cudaLibraryLoadData(&kernel->library_, compiled.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      key.entry + ": loading its machine code"));
  CUDABK_TRY(cuda_check(cudaLibraryGetKernel(&kernel->handle_, kernel->library_, compiled.lowered_name.c_str()),
                        key.entry + ": finding the kernel in its machine code"));
  return kernel;
}

CudaKernel::~CudaKernel() {
  if (library_ != nullptr) {
    cudaLibraryUnload(library_);
  }
}

Status CudaKernel::allow_shared(uint32_t bytes, const DeviceInfo& info) const {
  if (bytes <= allowed_shared_) {
    return success();
  }
  const int most = info.max_shared_bytes - report_.static_shared_bytes;
  if (bytes > static_cast<uint32_t>(most)) {
    return invalid(fmt::format("{} bytes of shared memory asked for, {} allows {}", bytes, info.id, most));
  }
  CUDABK_TRY(cuda_check(cudaFuncSetAttribute(handle_, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
                        "cudaFuncSetAttribute(max dynamic shared memory)"));
  allowed_shared_ = static_cast<uint32_t>(most);
  return success();
}

std::string launch_text(const KernelLaunch& launch) {
  return fmt::format("{} grid {}x{}x{} block {}x{}x{} shared {}",
                     launch.kernel != nullptr ? launch.kernel->key().entry : "(no kernel)", launch.grid.x,
                     launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z, launch.shared_bytes);
}

Result<const CudaKernel*> check_launch(const KernelLaunch& launch, const DeviceInfo& info) {
  const auto* kernel = dynamic_cast<const CudaKernel*>(launch.kernel);
  if (kernel == nullptr) {
    return invalid(launch_text(launch) + ": not a kernel of a CUDA device");
  }
  const uint32_t expected = kernel->key().args_bytes;
  if (expected != 0 && launch.args.size() != expected) {
    return invalid(fmt::format("{}: {} bytes of arguments, the kernel takes {}", launch_text(launch),
                               launch.args.size(), expected));
  }
  if (launch.block.count() == 0 || launch.block.count() > static_cast<uint64_t>(info.max_threads_per_block)) {
    return invalid(fmt::format("{}: {} threads in a block, 1 to {} are possible", launch_text(launch),
                               launch.block.count(), info.max_threads_per_block));
  }
  // hardware: grid limits of every architecture from sm_30
  if (launch.grid.count() == 0 || launch.grid.x > 0x7fffffffu || launch.grid.y > 65535 || launch.grid.z > 65535) {
    return invalid(launch_text(launch) + ": a grid is 1 to 2147483647 x 65535 x 65535 blocks");
  }
  if (Status allowed = kernel->allow_shared(launch.shared_bytes, info); !allowed.ok()) {
    return std::move(allowed).error().with_context(launch_text(launch));
  }
  return kernel;
}

}  // namespace cudabk
