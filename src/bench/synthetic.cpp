#include "bench/synthetic.h"

#include <algorithm>

namespace cudabk {
namespace {

const OpDef* mul_mat_op() {
  const Result<const OpDef*> op = find_op("mul_mat");
  return op.ok() ? *op : nullptr;
}

void visit(const Tensor& t, std::vector<const Tensor*>& seen) {
  if (t.op == kOpNone || std::find(seen.begin(), seen.end(), &t) != seen.end()) {
    return;
  }
  for (const Tensor* src : t.src) {
    visit(*src, seen);
  }
  seen.push_back(&t);
}

// Every node that `t` depends on and itself, sources first.
std::vector<const Tensor*> nodes_of(const Tensor& t) {
  std::vector<const Tensor*> nodes;
  visit(t, nodes);
  return nodes;
}

}  // namespace

Support SyntheticTarget::supports(const Tensor& t, const DeviceInfo& device) const {
  for (const Tensor* node : nodes_of(t)) {
    if (const OpDef* op = op_of(*node)) {
      if (const Support s = op->supports(*node, device); !s) {
        return Support::no(std::string(op->name()) + ": " + s.reason);
      }
    }
  }
  return {};
}

Cost SyntheticTarget::cost(const Tensor& t) const {
  Cost total;
  std::vector<const Tensor*> leaves;
  for (const Tensor* node : nodes_of(t)) {
    if (const OpDef* op = op_of(*node)) {
      total.operations += op->cost(*node).operations;
    }
    for (const Tensor* src : node->src) {
      const Tensor& root = src->root();
      if (root.op == kOpNone && std::find(leaves.begin(), leaves.end(), &root) == leaves.end()) {
        leaves.push_back(&root);
        total.bytes += static_cast<double>(byte_size(root));
        total.weight_bytes += root.usage == Usage::kWeights ? static_cast<double>(byte_size(root)) : 0;
      }
    }
  }
  total.bytes += static_cast<double>(byte_size(t));
  return total;
}

Result<std::vector<Launch>> SyntheticTarget::lower(const Tensor&, LowerContext&) const {
  return internal_error(std::string(name()) + ": a synthetic target is never a node of a graph");
}

std::span<const Family> SyntheticTarget::families() const {
  const OpDef* op = mul_mat_op();
  return op != nullptr ? op->families() : std::span<const Family>{};
}

Problem SyntheticTarget::problem(const Tensor& t) const {
  for (const Tensor* node : nodes_of(t)) {
    if (node->op == "mul_mat") {
      return mul_mat_op()->problem(*node);
    }
  }
  return {std::string(name()), "", {}};
}

double SyntheticTarget::tolerance(const Tensor& t) const {
  double sum = 0;
  for (const Tensor* node : nodes_of(t)) {
    if (const OpDef* op = op_of(*node)) {
      sum += op->tolerance(*node);
    }
  }
  return sum;
}

std::vector<std::string> SyntheticTarget::weight_types() {
  const OpDef* op = mul_mat_op();
  if (op != nullptr) {
    for (const Axis& axis : op->axes()) {
      if (axis.name == "type") {
        return axis.allowed;
      }
    }
  }
  return {};
}

}  // namespace cudabk
