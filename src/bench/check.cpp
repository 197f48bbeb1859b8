#include "bench/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/op_def.h"
#include "verify/verify.h"

namespace cudabk {
namespace {

constexpr int64_t kWhole = INT64_MAX;
// Larger results are checked on a sample (tile edges and random rows and columns).
constexpr int64_t kSampleAbove = 1 << 12;

// Nodes whose values exist nowhere in memory because a fusion computes past them.
std::set<const Tensor*> swallowed(const Graph& graph, const Plan& plan) {
  std::set<const Tensor*> nodes;
  for (const FusionRecord& fusion : plan.fusions) {
    for (int i = 0; i + 1 < fusion.count; ++i) {
      nodes.insert(graph.nodes()[static_cast<size_t>(fusion.node) + static_cast<size_t>(i)]);
    }
  }
  return nodes;
}

// Leaves as they were filled, materialised results as the device left them.
class CopyValues final : public Values {
 public:
  CopyValues(const Replicas& replicas, const std::set<const Tensor*>& missing)
      : replicas_(replicas), missing_(missing) {}

  std::span<const std::byte> bytes(const Tensor& root) const override {
    if (missing_.count(&root) != 0) {
      return {};
    }
    const auto [slot, is_fresh] = memory_.try_emplace(&root);
    if (is_fresh) {
      Result<std::vector<std::byte>> loaded =
          root.op == kOpNone ? replicas_.leaf_bytes(root) : replicas_.download(root);
      if (loaded.ok()) {
        slot->second = std::move(loaded).value();
      } else if (!failed_) {
        failed_ = loaded.error();
      }
    }
    return slot->second;
  }

  // The first transfer that failed.
  Status status() const { return failed_ ? Status(*failed_) : success(); }

 private:
  const Replicas& replicas_;
  const std::set<const Tensor*>& missing_;
  mutable std::map<const Tensor*, std::vector<std::byte>> memory_;
  mutable std::optional<Error> failed_;
};

// The tolerances of a node and of the swallowed nodes behind it, added up.
double bound_of(const Tensor& t, const std::set<const Tensor*>& missing) {
  const OpDef* op = op_of(t);
  double bound = op != nullptr ? op->tolerance(t) : 0;
  for (const Tensor* src : t.src) {
    if (missing.count(src) != 0) {
      bound += bound_of(*src, missing);
    }
  }
  return bound;
}

void merge(CheckResult& total, const OutputCheck& output) {
  const Comparison& comparison = output.comparison;
  total.elements += comparison.count;
  if (!comparison.pass() || total.worst.empty() || comparison.nmse >= total.nmse) {
    total.nmse = comparison.nmse;
    total.tolerance = comparison.bound;
    total.worst = output.text();
  }
  total.passed = total.passed && comparison.pass();
}

}  // namespace

Result<CheckResult> check_copy(Replicas& replicas, const Plan& plan, int copy, const CheckOptions& options) {
  CheckResult total;
  total.done = true;
  total.passed = true;
  if (const Status guards = replicas.check_guards(); !guards.ok()) {
    if (guards.error().kind != ErrorKind::kWrongOutput) {
      return guards.error();
    }
    total.passed = false;
    total.worst = guards.error().message;
    return total;
  }
  const std::set<const Tensor*> missing = swallowed(replicas.graph(), plan);
  const CopyValues values(replicas, missing);
  for (const Tensor* t : replicas.tensors(copy)) {
    if (is_view_op(*t) || is_empty(*t) || missing.count(t) != 0) {
      continue;
    }
    VerifyOptions verify;
    verify.seed = options.seed;
    verify.full_threshold = options.whole ? kWhole : kSampleAbove;
    verify.bound = bound_of(*t, missing);
    CUDABK_ASSIGN(const std::vector<std::byte> memory, replicas.download(t->root()));
    CUDABK_ASSIGN(const OutputCheck output, check_output(*t, memory, values, verify));
    CUDABK_TRY(values.status());
    merge(total, output);
    if (!total.passed) {
      break;  // what follows computes with wrong values
    }
  }
  return total;
}

}  // namespace cudabk
