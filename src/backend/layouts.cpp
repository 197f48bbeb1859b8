#include "backend/layouts.h"

#include <algorithm>

#include "ops/frag_weights.h"
#include "ops/op_def.h"

namespace cudabk {
namespace {

bool is_written(const Graph& graph, const Tensor& leaf) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Tensor* node) { return !is_view_op(*node) && &node->root() == &leaf; });
}

// Does an op with kernels for packed weights read it? A table of rows alone is faster raw.
bool is_multiplied(const Graph& graph, const Tensor& leaf) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Tensor* node) {
    const OpDef* op = op_of(*node);
    return op != nullptr && !op->families().empty() && &node->src[0]->root() == &leaf;
  });
}

template <class LayoutOf>
void assign(Graph& graph, const DeviceInfo& device, LayoutOf layout_of) {
  for (const auto& t : graph.tensors()) {
    if (t->view_src != nullptr || t->op != kOpNone) {
      continue;
    }
    const bool packed = layout_of(*t) == WeightLayout::kFrag && frag_can_hold(*t, device) && !is_written(graph, *t);
    t->layout = packed ? WeightLayout::kFrag : WeightLayout::kRaw;
  }
}

void assign_wishes(Graph& graph, const DeviceInfo& device, const Profile& profile, bool swapped) {
  assign(graph, device, [&](const Tensor& t) {
    if (t.layout_wish != LayoutWish::kAuto) {
      return t.layout_wish == LayoutWish::kFrag ? WeightLayout::kFrag : WeightLayout::kRaw;
    }
    if (!is_multiplied(graph, t)) {
      return WeightLayout::kRaw;
    }
    const bool frag = profile.layout_of(dtype_name(t.type)) == "frag";
    return frag != swapped ? WeightLayout::kFrag : WeightLayout::kRaw;
  });
}

// Can the forced family run every node of an op that has it?
bool forced_family_runs(const Graph& graph, const DeviceInfo& device, const PlanOptions& options) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [&](const Tensor* node) {
    const OpDef* op = op_of(*node);
    const Family* family = op == nullptr ? nullptr : find_family(op->families(), options.forced_family);
    return family == nullptr ||
           family->applicable(op->problem(*node), complete_config(*family, options.forced_config), device);
  });
}

}  // namespace

void choose_layouts(Graph& graph, const DeviceInfo& device, const PlanOptions& options) {
  const Profile& profile = *options.profile;
  assign_wishes(graph, device, profile, false);
  if (options.forced_family.empty() || forced_family_runs(graph, device, options)) {
    return;
  }
  assign_wishes(graph, device, profile, true);
  if (!forced_family_runs(graph, device, options)) {
    assign_wishes(graph, device, profile, false);
  }
}

void set_layouts(Graph& graph, const DeviceInfo& device, WeightLayout layout) {
  assign(graph, device, [&](const Tensor&) { return layout; });
}

}  // namespace cudabk
