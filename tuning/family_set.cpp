#include "tuning/family_set.h"

#include "ops/op_def.h"

namespace cudabk {
namespace {

// Dimensions of the op's problems, from one small case.
std::vector<std::string> problem_dims(const OpDef& op) {
  std::vector<std::string> names;
  Graph graph;
  const std::vector<CaseParams> cases = op.test_cases();
  if (cases.empty()) {
    return names;
  }
  const Result<Tensor*> t = op.build(graph, cases.front());
  if (t.ok()) {
    for (const auto& [name, value] : op.problem(**t).dims) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

FamilySet family_set() {
  FamilySet set;
  for (const OpDef* op : all_ops()) {
    if (op->families().empty()) {
      continue;
    }
    const std::string name(op->name());
    set.by_op[name] = op->families();
    if (std::vector<std::string> dims = problem_dims(*op); !dims.empty()) {
      set.dims[name] = std::move(dims);
    }
    for (const Axis& axis : op->axes()) {
      if (axis.name == "type" && !axis.allowed.empty()) {
        set.keys[name] = axis.allowed;
      }
    }
  }
  return set;
}

}  // namespace cudabk
