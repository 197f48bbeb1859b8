// How many distinct copies of an op a replay needs so that no weight is found in a cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace cudabk {

enum class CacheMode { kCold, kHot };
Result<CacheMode> parse_cache_mode(std::string_view text);  // cold|hot

// max(256 MB, 4 * L2): distinct bytes that a cold replay must read.
int64_t cold_bytes_required(int64_t l2_bytes);

struct FootprintRequest {
  CacheMode mode = CacheMode::kCold;
  int64_t weight_bytes = 0;   // distinct weight bytes one copy of the op reads; 0 for ops without weights
  int64_t touched_bytes = 0;  // everything that one copy reads or writes (with its own activations)
  int64_t memory_bytes = 0;   // device memory of one copy; 0: what it touches
  int64_t l2_bytes = 0;
  int64_t free_bytes = 0;  // device memory
  bool emulated = false;
  int64_t max_copies = 4096;  // a replay of more launches than that measures something else
};

struct FootprintPlan {
  int64_t copies = 1;
  std::string label;           // "cold", "hot", "emulated", or "warm": cold was asked for and cannot be had
  std::string reason;          // why it is "warm"; else empty
  int64_t distinct_bytes = 0;  // per replay: of weights, or of everything for an op without weights
  int64_t required_bytes = 0;  // 0 unless cold was asked for on a GPU
  double l2_ratio = 0;         // distinct_bytes / L2; 0 when the L2's size is not known
};

// kUnfit with the sizes when not even one copy fits into free memory; kInvalid for an op that touches nothing. Of free
// memory 10 % are left alone.
Result<FootprintPlan> plan_footprint(const FootprintRequest& request);

}  // namespace cudabk
