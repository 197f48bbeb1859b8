// Graphs around the fusion rules: those that must fuse, and near misses that must not.
#pragma once

#include <string>
#include <string_view>

#include "ops/op_def.h"

namespace cudabk {

// Axes: pattern (words), type (of weights), cols, rows.
const OpDef& fusion_target();

// What a pattern demands of the plan when fusion is on.
struct FusionExpectation {
  std::string_view rule;                                           // empty: nothing is demanded
  enum class Fires { kMust, kMay, kMustNot } fires = Fires::kMay;  // kMay: depends on the kernel family
};
FusionExpectation fusion_expectation(std::string_view pattern);

}  // namespace cudabk
