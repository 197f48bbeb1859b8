// Fusion rules: patterns of consecutive nodes that become fewer launches. The list in fusion.cpp is tried in order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"
#include "ops/op_def.h"

namespace cudabk {

// What a rule may look at.
struct FusionInput {
  const Graph& graph;
  const std::vector<int>& uses;  // by Tensor::id: source slots that name the tensor
};

struct FusionMatch {
  int count = 0;          // nodes consumed; 0: no match
  std::string near_miss;  // the pattern's ops are there, but a condition fails: which, with values
};

class FusionRule {
 public:
  virtual ~FusionRule() = default;
  virtual std::string_view name() const = 0;  // "rms_norm_mul": the switch and the label
  virtual std::string_view summary() const = 0;
  virtual FusionMatch match(const FusionInput& in, size_t first) const = 0;
  // Precondition: match() returned a count. kUnsupported: the chosen kernel has no such form; the planner then lowers
  // the nodes one by one and records the message as a near miss.
  virtual Result<std::vector<Launch>> lower(const FusionInput& in, size_t first, LowerContext& ctx) const = 0;
};

std::span<const FusionRule* const> fusion_rules();  // in the order tried
// kInvalid, listing the names, when there is no such rule.
Status check_fusion_name(std::string_view name);

// The conditions every chain of consecutive nodes must meet: ops as listed, each intermediate used once, not an
// output, not a view, read by the next node. "" or the reason; "-" when not even the ops match.
std::string chain_mismatch(const FusionInput& in, size_t first, std::span<const std::string_view> ops);

}  // namespace cudabk
