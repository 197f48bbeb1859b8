// Turns a heap of activity records into a TraceReport. Pure: the profiler fills the input.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "measure/trace.h"

namespace cudabk {

struct RawActivity {
  KernelRecord record;
  uint32_t correlation = 0;  // id of the host call that caused it: a launch, or one replay of a graph
  uint64_t graph_node = 0;   // id of the executable node; 0 outside graphs
};

// External ids pushed around eager launches: session, replay and launch in one number. Never 0.
struct ExternalId {
  uint32_t session = 0;  // [1, 2^16)
  uint32_t replay = 0;   // [0, 2^24)
  uint32_t launch = 0;   // [0, 2^24)
  uint64_t pack() const { return uint64_t{session} << 48 | uint64_t{replay} << 24 | launch; }
  static ExternalId unpack(uint64_t id);
};

struct TraceInput {
  std::vector<RawActivity> activities;
  size_t launches = 0;
  int64_t replays = 0;  // run with tracing on, the uncounted first ones included
  int64_t uncounted = 1;
  int64_t others = 0;             // records expected of no launch
  std::vector<int64_t> expected;  // records per launch in one replay; -1: not known, the most seen is expected
  int64_t dropped = 0;
  // Eager: correlation id -> external id, and the session they must belong to.
  bool graph = false;
  std::unordered_map<uint32_t, uint64_t> external;
  uint32_t session = 0;
  // Graph: executable node -> launch.
  std::function<std::optional<size_t>(uint64_t)> launch_of_node;
};

TraceReport assemble_trace(TraceInput input);

// One report of several about the same launches.
TraceReport merge_traces(std::vector<TraceReport> parts, size_t launches);

}  // namespace cudabk
