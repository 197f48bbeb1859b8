// Which layout each weight tensor of a graph has in memory.
#pragma once

#include "backend/plan.h"
#include "graph/graph.h"

namespace cudabk {

// Sets Tensor::layout of every leaf; to be called once the graph is complete, before memory is allocated. A leaf's wish
// decides, or, for leaves that a product reads, the profile's layout for its type. A wish that cannot be met leaves the
// tensor raw: other shapes, types, devices, and tensors that a node writes to. Where options force a family that cannot
// run with the profile's layouts, kAuto leaves take the one with which it can.
void choose_layouts(Graph& graph, const DeviceInfo& device, const PlanOptions& options);

// Every leaf raw or, where it can be, packed, whatever it wishes.
void set_layouts(Graph& graph, const DeviceInfo& device, WeightLayout layout);

}  // namespace cudabk
