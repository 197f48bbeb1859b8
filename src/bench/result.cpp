#include "bench/result.h"

#include <algorithm>
#include <cmath>

namespace cudabk {

std::string_view status_name(CaseStatus status) {
  switch (status) {
    case CaseStatus::kOk:
      return "ok";
    case CaseStatus::kWrong:
      return "wrong";
    case CaseStatus::kUnsupported:
      return "unsupported";
    case CaseStatus::kFailed:
      return "failed";
    case CaseStatus::kOutOfMemory:
      return "out_of_memory";
    case CaseStatus::kUnfit:
      return "unfit";
    case CaseStatus::kThrottled:
      return "throttled";
    case CaseStatus::kNoSamples:
      return "no_samples";
    case CaseStatus::kInterrupted:
      return "interrupted";
  }
  return "failed";
}

std::optional<double> CaseResult::time_ns() const {
  if (status != CaseStatus::kOk || !summary || !std::isfinite(summary->median) || summary->median <= 0) {
    return std::nullopt;
  }
  return summary->median;
}

std::optional<double> CaseResult::bytes_per_ns() const {
  const std::optional<double> time = time_ns();
  return time ? std::optional(cost.bytes / *time) : std::nullopt;
}

std::optional<double> CaseResult::operations_per_ns() const {
  const std::optional<double> time = time_ns();
  return time ? std::optional(cost.operations / *time) : std::nullopt;
}

std::optional<double> limit_fraction(const CaseResult& result, const RunLimits& limits) {
  const std::optional<double> time = result.time_ns();
  if (!time) {
    return std::nullopt;
  }
  double bound_ns = 0;
  if (limits.read_bytes_per_ns && *limits.read_bytes_per_ns > 0) {
    bound_ns = std::max(bound_ns, result.cost.bytes / *limits.read_bytes_per_ns);
  }
  if (limits.gemm_operations_per_ns && *limits.gemm_operations_per_ns > 0) {
    bound_ns = std::max(bound_ns, result.cost.operations / *limits.gemm_operations_per_ns);
  }
  return bound_ns > 0 ? std::optional(bound_ns / *time) : std::nullopt;
}

}  // namespace cudabk
