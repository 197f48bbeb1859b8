// What was chosen for a graph, as text on stderr (CUDABK_EXPLAIN=1).
#pragma once

#include "plugin_device.h"

namespace cudabk::plugin {

// Host time of graph_compute calls.
struct HostTimes {
  double scan_ns = 0;  // to recognise a graph
  int64_t nodes = 0, graphs = 0;
  double known_ns = 0;  // whole calls for graphs that ran before at the same addresses
  int64_t known_nodes = 0;
};

void explain_plan(const PluginDevice& device, const Plan& plan, const Graph& graph);
void explain_times(const PluginDevice& device, const HostTimes& times, const GraphCacheCounters& counters);

}  // namespace cudabk::plugin
