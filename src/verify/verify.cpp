#include "verify/verify.h"

#include <map>
#include <set>

#include "ops/op_def.h"

namespace cudabk {
namespace {

// Host copies of leaves. Results are left out, so that the reference computes them itself.
class LeafValues final : public Values {
 public:
  std::span<const std::byte> bytes(const Tensor& root) const override {
    const auto found = memory_.find(&root);
    return found == memory_.end() ? std::span<const std::byte>{} : std::span<const std::byte>(found->second);
  }
  Status add(const Tensor& root, GraphBuffers& buffers) {
    auto [slot, is_fresh] = memory_.try_emplace(&root);
    if (!is_fresh) {
      return success();
    }
    slot->second.resize(static_cast<size_t>(byte_size(root)));
    return buffers.download(root, slot->second);
  }

 private:
  std::map<const Tensor*, std::vector<std::byte>> memory_;
};

// All tensors that `t` is computed from, and itself.
void collect(const Tensor& t, std::set<const Tensor*>& found) {
  if (!found.insert(&t).second) {
    return;
  }
  for (const Tensor* s : t.src) {
    if (s != nullptr) {
      collect(*s, found);
    }
  }
}

std::vector<const Tensor*> outputs_of(const Graph& graph, const VerifyOptions& options) {
  if (!options.outputs.empty() || graph.nodes().empty()) {
    return options.outputs;
  }
  std::vector<const Tensor*> outputs;
  for (const Tensor* node : graph.nodes()) {
    if (node->is_output) {
      outputs.push_back(node);
    }
  }
  if (outputs.empty()) {
    outputs.push_back(graph.nodes().back());
  }
  return outputs;
}

// Copies of the leaves that the outputs depend on, as they are now.
Status read_leaves(const std::vector<const Tensor*>& outputs, GraphBuffers& buffers, LeafValues& leaves) {
  std::set<const Tensor*> ancestors;
  for (const Tensor* output : outputs) {
    collect(*output, ancestors);
  }
  for (const Tensor* t : ancestors) {
    if (t->op == kOpNone) {
      CUDABK_TRY(leaves.add(*t, buffers));
    }
  }
  return success();
}

double added_tolerances(const Tensor& output) {
  std::set<const Tensor*> ancestors;
  collect(output, ancestors);
  double bound = 0;
  for (const Tensor* t : ancestors) {
    const OpDef* op = op_of(*t);
    bound += op != nullptr ? op->tolerance(*t) : 0;
  }
  return bound;
}

Result<VerifyReport> compare_outputs(const std::vector<const Tensor*>& outputs, GraphBuffers& buffers,
                                     const LeafValues& leaves, const VerifyOptions& options) {
  VerifyReport report;
  for (const Tensor* output : outputs) {
    VerifyOptions own = options;
    own.bound = options.bound > 0 ? options.bound : added_tolerances(*output);
    std::vector<std::byte> memory(static_cast<size_t>(byte_size(output->root())));
    CUDABK_TRY(buffers.download(output->root(), memory));
    CUDABK_ASSIGN(OutputCheck check, check_output(*output, memory, leaves, own));
    report.outputs.push_back(std::move(check));
  }
  return report;
}

}  // namespace

Result<VerifyReport> check_outputs(const Graph& graph, GraphBuffers& buffers, const VerifyOptions& options) {
  const std::vector<const Tensor*> outputs = outputs_of(graph, options);
  LeafValues leaves;
  CUDABK_TRY(read_leaves(outputs, buffers, leaves));
  return compare_outputs(outputs, buffers, leaves, options);
}

Result<VerifyReport> verify_graph(const Graph& graph, GraphBuffers& buffers, Backend& backend,
                                  const VerifyOptions& options) {
  const std::vector<const Tensor*> outputs = outputs_of(graph, options);
  LeafValues leaves;
  CUDABK_TRY(read_leaves(outputs, buffers, leaves));
  CUDABK_TRY(buffers.poison_results());
  CUDABK_TRY(backend.compute(graph, buffers.bindings()));
  CUDABK_TRY(backend.synchronize());
  CUDABK_TRY(buffers.check_guards());
  return compare_outputs(outputs, buffers, leaves, options);
}

}  // namespace cudabk
