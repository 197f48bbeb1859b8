#include "device/cuda/cublas.h"

#include <fmt/format.h>

#include "device/cuda/cublas_types.h"

namespace cudabk {

namespace {

constexpr std::string_view kNames[] = {"libcublas.so.13", "libcublas.so.12"};
constexpr std::string_view kCompanion = "libcublasLt.so.";

std::string call_text(const GemmCall& call) {
  return fmt::format("library product {} x {} -> {}, m={} n={} k={} batch={}", dtype_traits(call.type_ab).name,
                     dtype_traits(call.type_ab).name, dtype_traits(call.type_c).name, call.m, call.n, call.k,
                     call.batch);
}

}  // namespace

Result<std::unique_ptr<Cublas>> Cublas::open(std::string_view toolkit_dir) {
  CUDABK_ASSIGN(DynamicLibrary library, DynamicLibrary::open(kNames, toolkit_dir, kCompanion));
  std::unique_ptr<Cublas> cublas(new Cublas(std::move(library)));
  CUDABK_TRY(cublas->load_functions());
  if (const cublasStatus_t status = cublas->create_(&cublas->handle_); status != CUBLAS_STATUS_SUCCESS) {
    return unfit(fmt::format("cublasCreate: {}", cublas->status_string_(status)));
  }
  // f32 sums to the end, also where the result is half precision.
  const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  CUDABK_TRY(cublas->check(cublas->set_math_mode_(cublas->handle_, mode), "cublasSetMathMode"));
  return cublas;
}

Cublas::~Cublas() {
  if (handle_ != nullptr) {
    destroy_(handle_);
  }
}

Status Cublas::load_functions() {
  CUDABK_TRY(library_.load(create_, "cublasCreate_v2"));
  CUDABK_TRY(library_.load(destroy_, "cublasDestroy_v2"));
  CUDABK_TRY(library_.load(set_stream_, "cublasSetStream_v2"));
  CUDABK_TRY(library_.load(set_workspace_, "cublasSetWorkspace_v2"));
  CUDABK_TRY(library_.load(set_math_mode_, "cublasSetMathMode"));
  CUDABK_TRY(library_.load(status_string_, "cublasGetStatusString"));
  CUDABK_TRY(library_.load(gemm_, "cublasGemmEx_64"));
  CUDABK_TRY(library_.load(gemm_strided_, "cublasGemmStridedBatchedEx_64"));
  return library_.load(gemm_pointers_, "cublasGemmBatchedEx_64");
}

Status Cublas::check(cublasStatus_t status, std::string_view what) const {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return success();
  }
  const std::string message = fmt::format("{}: {}", what, status_string_(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED ? unfit(message) : internal_error(message);
}

Status Cublas::run(const GemmCall& call, cudaStream_t stream, const Memory& workspace) {
  CUDABK_ASSIGN(const cudaDataType type_ab, cublas_type(call.type_ab));
  CUDABK_ASSIGN(const cudaDataType type_c, cublas_type(call.type_c));
  if (call.type_c != DType::f32 && call.type_c != call.type_ab) {
    return invalid(call_text(call) + ": the result must be f32 or the operands' type");
  }
  if (call.m == 0 || call.n == 0 || call.batch == 0) {
    return success();
  }
  CUDABK_TRY(check(set_stream_(handle_, stream), "cublasSetStream"));  // also resets the workspace
  CUDABK_TRY(
      check(set_workspace_(handle_, workspace.ptr(), static_cast<size_t>(workspace.bytes())), "cublasSetWorkspace"));
  const cublasComputeType_t compute = cublas_compute(call.type_ab, call.allow_tf32);
  const float one = 1, zero = 0;
  cublasStatus_t status;
  if (call.pointer_arrays) {
    status = gemm_pointers_(
        handle_, CUBLAS_OP_T, CUBLAS_OP_N, call.m, call.n, call.k, &one, reinterpret_cast<const void* const*>(call.a),
        type_ab, call.lda, reinterpret_cast<const void* const*>(call.b), type_ab, call.ldb, &zero,
        reinterpret_cast<void* const*>(call.c), type_c, call.ldc, call.batch, compute, CUBLAS_GEMM_DEFAULT);
  } else if (call.batch == 1) {
    status = gemm_(handle_, CUBLAS_OP_T, CUBLAS_OP_N, call.m, call.n, call.k, &one, call.a, type_ab, call.lda, call.b,
                   type_ab, call.ldb, &zero, call.c, type_c, call.ldc, compute, CUBLAS_GEMM_DEFAULT);
  } else {
    status = gemm_strided_(handle_, CUBLAS_OP_T, CUBLAS_OP_N, call.m, call.n, call.k, &one, call.a, type_ab, call.lda,
                           call.stride_a, call.b, type_ab, call.ldb, call.stride_b, &zero, call.c, type_c, call.ldc,
                           call.stride_c, call.batch, compute, CUBLAS_GEMM_DEFAULT);
  }
  return check(status, call_text(call));
}

}  // namespace cudabk
