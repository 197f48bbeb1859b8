// What cuBLAS and cuBLASLt call our types.
#pragma once

#include <cublas_v2.h>
#include <fmt/format.h>

#include "core/result.h"
#include "formats/dtypes.h"

namespace cudabk {

inline Result<cudaDataType> cublas_type(DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return invalid(fmt::format("library product of {}: only f32, f16 and bf16", dtype_traits(type).name));
  }
}

// f32 sums always.
inline cublasComputeType_t cublas_compute(DType operands, bool allow_tf32) {
  return allow_tf32 && operands == DType::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace cudabk
