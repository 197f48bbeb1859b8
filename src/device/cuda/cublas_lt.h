// Matrix products of cuBLASLt by number in its own list of suggestions, so that a tuner can choose among them.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/cuda/dynamic_library.h"
#include "device/device.h"

namespace cudabk {

// One handle, for the device that was current when it was opened. Suggestions are asked for once per kind of call.
class CublasLt {
 public:
  // kUnfit with the reason where there is no cuBLASLt.
  static Result<std::unique_ptr<CublasLt>> open(std::string_view toolkit_dir);
  ~CublasLt();

  // Enqueues one product (batch 1, no pointer arrays) by suggestion number call.algo, from 1; by the last one where
  // there are fewer. `workspace` is free for it until the stream has passed this point.
  Status run(const GemmCall& call, cudaStream_t stream, const Memory& workspace);

 private:
  // All that the suggestions depend on.
  struct Kind {
    DType type_ab, type_c;
    bool allow_tf32;
    int64_t m, n, k, lda, ldb, ldc;
    uint32_t align_a, align_b, align_c;  // bytes, at most 256
    int64_t workspace;
    auto operator<=>(const Kind&) const = default;
  };
  // Descriptions of the operation and its matrices. Owned here; freed with the list.
  struct Suggestions {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    std::vector<cublasLtMatmulHeuristicResult_t> list;
  };

  explicit CublasLt(DynamicLibrary library) : library_(std::move(library)) {}
  Status load_functions();
  Status check(cublasStatus_t status, std::string_view what) const;
  Status describe(const Kind& kind, Suggestions& s) const;
  Status ask(const Kind& kind, Suggestions& s) const;
  void release(Suggestions& s) const;

  DynamicLibrary library_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Kind, Suggestions> known_;
  decltype(&cublasLtCreate) create_ = nullptr;
  decltype(&cublasLtDestroy) destroy_ = nullptr;
  decltype(&cublasLtGetStatusString) status_string_ = nullptr;
  decltype(&cublasLtMatmulDescCreate) operation_create_ = nullptr;
  decltype(&cublasLtMatmulDescDestroy) operation_destroy_ = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) operation_set_ = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create_ = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy_ = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create_ = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy_ = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_ = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) suggest_ = nullptr;
  decltype(&cublasLtMatmul) matmul_ = nullptr;
};

}  // namespace cudabk
