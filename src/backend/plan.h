// A plan: a graph's launches with scratch offsets, as data. It can be run on a stream, built as a CUDA graph, bound to
// other addresses, printed, and matched with the kernels a profiler saw.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/result.h"
#include "dispatch/profile.h"
#include "graph/graph.h"
#include "ops/launch.h"

namespace cudabk {

struct PlanOptions {
  bool fusion = true;
  std::set<std::string> disabled_rules;  // --no-fuse
  const Profile* profile = nullptr;      // dispatch tables; not null, outlives the plan
  // Overrides the table for every op that has this family (tuner, --variant). Empty family: the table decides.
  std::string forced_family;
  Config forced_config;
};

struct PlannedLaunch {
  Launch launch;
  int node = -1;  // index in graph.nodes() of the (last) node it computes
};

struct ChoiceRecord {
  int node = -1;
  Problem problem;
  Choice choice;
};

struct FusionRecord {
  std::string rule;
  int node = -1;          // first node of the pattern
  int count = 0;          // nodes consumed when it fired, 0 for a near miss
  std::string near_miss;  // why not; empty when it fired
};

struct Plan {
  std::vector<PlannedLaunch> launches;
  std::vector<int64_t> scratch_offsets;  // by scratch id
  int64_t scratch_bytes = 0;             // one arena
  std::vector<ChoiceRecord> choices;
  std::vector<FusionRecord> fusions;
  uint64_t fingerprint = 0;
  std::vector<KernelKey> kernels() const;  // distinct
};

// Ops, types, layouts, shapes, strides, parameters, sources and view offsets of every node; not addresses.
uint64_t fingerprint(const Graph& graph);

// fusion matching -> lowering -> scratch assignment. Empty nodes and views produce nothing. Errors name the node, its
// types and shapes.
Result<Plan> make_plan(const Graph& graph, const DeviceInfo& device, const PlanOptions& options);

// Addresses: where each root tensor lives (by Tensor::id), and the scratch arena.
struct Bindings {
  std::vector<DevicePtr> tensors;  // index: Tensor::id of root tensors; nullptr for others
  DevicePtr scratch = nullptr;
};

// The launch with every relocation resolved, ready for a stream or a graph. Kernels are loaded through the device.
Result<Work> bind_launch(const Launch& launch, const Plan& plan, const Graph& graph, const Bindings& bindings,
                         Device& device);

}  // namespace cudabk
