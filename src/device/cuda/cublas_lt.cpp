#include "device/cuda/cublas_lt.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/cublas_types.h"

namespace cudabk {
namespace {

constexpr std::string_view kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
constexpr int kMostSuggestions = 12;
constexpr uint32_t kMostAlignment = 256;

uint32_t alignment(DevicePtr p) {
  const auto address = reinterpret_cast<uintptr_t>(p) | kMostAlignment;
  return static_cast<uint32_t>(address & (~address + 1));
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::open(std::string_view toolkit_dir) {
  CUDABK_ASSIGN(DynamicLibrary library, DynamicLibrary::open(kNames, toolkit_dir));
  std::unique_ptr<CublasLt> lt(new CublasLt(std::move(library)));
  CUDABK_TRY(lt->load_functions());
  CUDABK_TRY(lt->check(lt->create_(&lt->handle_), "cublasLtCreate"));
  return lt;
}

CublasLt::~CublasLt() {
  for (auto& [kind, suggestions] : known_) {
    release(suggestions);
  }
  if (handle_ != nullptr) {
    destroy_(handle_);
  }
}

Status CublasLt::load_functions() {
  CUDABK_TRY(library_.load(create_, "cublasLtCreate"));
  CUDABK_TRY(library_.load(destroy_, "cublasLtDestroy"));
  CUDABK_TRY(library_.load(status_string_, "cublasLtGetStatusString"));
  CUDABK_TRY(library_.load(operation_create_, "cublasLtMatmulDescCreate"));
  CUDABK_TRY(library_.load(operation_destroy_, "cublasLtMatmulDescDestroy"));
  CUDABK_TRY(library_.load(operation_set_, "cublasLtMatmulDescSetAttribute"));
  CUDABK_TRY(library_.load(layout_create_, "cublasLtMatrixLayoutCreate"));
  CUDABK_TRY(library_.load(layout_destroy_, "cublasLtMatrixLayoutDestroy"));
  CUDABK_TRY(library_.load(preference_create_, "cublasLtMatmulPreferenceCreate"));
  CUDABK_TRY(library_.load(preference_destroy_, "cublasLtMatmulPreferenceDestroy"));
  CUDABK_TRY(library_.load(preference_set_, "cublasLtMatmulPreferenceSetAttribute"));
  CUDABK_TRY(library_.load(suggest_, "cublasLtMatmulAlgoGetHeuristic"));
  return library_.load(matmul_, "cublasLtMatmul");
}

Status CublasLt::check(cublasStatus_t status, std::string_view what) const {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return success();
  }
  const std::string message = fmt::format("{}: {}", what, status_string_(status));
  const bool unfit_here = status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_SUPPORTED;
  return unfit_here ? unfit(message) : internal_error(message);
}

Status CublasLt::describe(const Kind& kind, Suggestions& s) const {
  CUDABK_ASSIGN(const cudaDataType type_ab, cublas_type(kind.type_ab));
  CUDABK_ASSIGN(const cudaDataType type_c, cublas_type(kind.type_c));
  const cublasComputeType_t compute = cublas_compute(kind.type_ab, kind.allow_tf32);
  const auto rows = static_cast<uint64_t>(kind.k);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  CUDABK_TRY(check(operation_create_(&s.operation, compute, CUDA_R_32F), "cublasLtMatmulDescCreate"));
  CUDABK_TRY(check(operation_set_(s.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
                   "cublasLtMatmulDescSetAttribute"));
  CUDABK_TRY(check(layout_create_(&s.a, type_ab, rows, static_cast<uint64_t>(kind.m), kind.lda),
                   "cublasLtMatrixLayoutCreate"));
  CUDABK_TRY(check(layout_create_(&s.b, type_ab, rows, static_cast<uint64_t>(kind.n), kind.ldb),
                   "cublasLtMatrixLayoutCreate"));
  return check(layout_create_(&s.c, type_c, static_cast<uint64_t>(kind.m), static_cast<uint64_t>(kind.n), kind.ldc),
               "cublasLtMatrixLayoutCreate");
}

Status CublasLt::ask(const Kind& kind, Suggestions& s) const {
  CUDABK_TRY(describe(kind, s));
  cublasLtMatmulPreference_t preference = nullptr;
  CUDABK_TRY(check(preference_create_(&preference), "cublasLtMatmulPreferenceCreate"));
  const auto workspace = static_cast<uint64_t>(kind.workspace);
  // f32 sums to the end: no parts added in a smaller type.
  const uint32_t reductions =
      kind.type_c == DType::f32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    return check(preference_set_(preference, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  Status status = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  status = status.ok() ? set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) : std::move(status);
  status = status.ok() ? set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.align_a) : std::move(status);
  status = status.ok() ? set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.align_b) : std::move(status);
  status = status.ok() ? set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.align_c) : std::move(status);
  status = status.ok() ? set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.align_c) : std::move(status);
  if (status.ok()) {
    int found = 0;
    s.list.resize(kMostSuggestions);
    status =
        check(suggest_(handle_, s.operation, s.a, s.b, s.c, s.c, preference, kMostSuggestions, s.list.data(), &found),
              "cublasLtMatmulAlgoGetHeuristic");
    s.list.resize(static_cast<size_t>(std::max(found, 0)));
    std::erase_if(s.list, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  }
  preference_destroy_(preference);
  if (status.ok() && s.list.empty()) {
    return unfit("cuBLASLt has no form of this product");
  }
  return status;
}

void CublasLt::release(Suggestions& s) const {
  for (cublasLtMatrixLayout_t layout : {s.a, s.b, s.c}) {
    if (layout != nullptr) {
      layout_destroy_(layout);
    }
  }
  if (s.operation != nullptr) {
    operation_destroy_(s.operation);
  }
  s = {};
}

Status CublasLt::run(const GemmCall& call, cudaStream_t stream, const Memory& workspace) {
  if (call.batch != 1 || call.pointer_arrays || call.algo < 1) {
    return internal_error("a numbered algorithm is for one product");
  }
  if (call.m == 0 || call.n == 0) {
    return success();
  }
  const Kind kind = {call.type_ab,
                     call.type_c,
                     call.allow_tf32,
                     call.m,
                     call.n,
                     call.k,
                     call.lda,
                     call.ldb,
                     call.ldc,
                     alignment(call.a),
                     alignment(call.b),
                     alignment(call.c),
                     workspace.bytes()};
  auto at = known_.find(kind);
  if (at == known_.end()) {
    Suggestions s;
    if (Status asked = ask(kind, s); !asked.ok()) {
      release(s);
      return asked;
    }
    at = known_.emplace(kind, std::move(s)).first;
  }
  const Suggestions& s = at->second;
  const auto& chosen = s.list[std::min(static_cast<size_t>(call.algo), s.list.size()) - 1];
  const float one = 1, zero = 0;
  return check(matmul_(handle_, s.operation, &one, call.a, s.a, call.b, s.b, &zero, call.c, s.c, call.c, s.c,
                       &chosen.algo, workspace.ptr(), static_cast<size_t>(workspace.bytes()), stream),
               "cublasLtMatmul");
}

}  // namespace cudabk
