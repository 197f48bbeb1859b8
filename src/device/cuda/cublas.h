// Matrix products of cuBLAS, which is opened at first use (linking it would cost every start 0.4 to 1 s).
#pragma once

#include <cublas_v2.h>

#include <memory>
#include <string_view>

#include "core/result.h"
#include "device/cuda/dynamic_library.h"
#include "device/device.h"

namespace cudabk {

// One handle, for the device that was current when it was opened.
class Cublas {
 public:
  // kUnfit with the reason where there is no cuBLAS, or no room for its handle.
  static Result<std::unique_ptr<Cublas>> open(std::string_view toolkit_dir);
  ~Cublas();

  // Enqueues the product. `workspace` is free for it until the stream has passed this point. kInvalid for a call that
  // cuBLAS has no form of.
  Status run(const GemmCall& call, cudaStream_t stream, const Memory& workspace);

 private:
  explicit Cublas(DynamicLibrary library) : library_(std::move(library)) {}
  Status load_functions();
  Status check(cublasStatus_t status, std::string_view what) const;

  DynamicLibrary library_;
  cublasHandle_t handle_ = nullptr;
  decltype(&cublasCreate_v2) create_ = nullptr;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  decltype(&cublasSetStream_v2) set_stream_ = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace_ = nullptr;
  decltype(&cublasSetMathMode) set_math_mode_ = nullptr;
  decltype(&cublasGetStatusString) status_string_ = nullptr;
  decltype(&cublasGemmEx_64) gemm_ = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided_ = nullptr;
  decltype(&cublasGemmBatchedEx_64) gemm_pointers_ = nullptr;
};

}  // namespace cudabk
