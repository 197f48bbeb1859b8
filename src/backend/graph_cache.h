// Graphs that a caller recognises by a key of its own: one seen before is run without being built again.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace cudabk {

// 128 bits over everything that a plan depends on, addresses left out. Equal keys are taken for equal graphs.
struct GraphKey {
  uint64_t low = 0, high = 0;
  bool operator==(const GraphKey&) const = default;
};

// A graph, and which of the addresses that the caller will give belongs to which root tensor. Several root tensors may
// share one address.
struct KeyedGraph {
  Graph graph;
  std::vector<std::pair<int, int>> roots;  // Tensor::id, index of the address
};

struct GraphCacheCounters {
  int64_t hits = 0, added = 0, patched = 0, evicted = 0;
  int64_t unfused = 0;  // fusions given up since the result lies in the memory of an operand
};

// The first run of a graph is launch by launch; from the second on it is one executable graph, in a backend of that
// mode. At most BackendOptions::max_cached_graphs are kept, the least recently used one goes first. Different root
// tensors may overlap in memory as the lifetimes of their values allow: a fusion whose result would overwrite operands
// of its group is not made.
class GraphCache {
 public:
  explicit GraphCache(Backend& backend) : backend_(backend) {}  // not owned

  // Runs the graph of this key at these addresses on the backend's stream, without waiting. False: there is none.
  // An error forgets the graph.
  Result<bool> run(const GraphKey& key, std::span<const DevicePtr> addresses);
  // Plans and keeps a graph that run() did not find, and runs it. The execution lives until it is evicted.
  Result<const Execution*> add(const GraphKey& key, KeyedGraph graph, std::span<const DevicePtr> addresses);
  const Graph& newest() const { return entries_.front().keyed.graph; }  // what add() or run() ran last
  const GraphCacheCounters& counters() const { return counters_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    GraphKey key;
    KeyedGraph keyed;
    std::vector<DevicePtr> addresses;
    std::unique_ptr<Execution> execution;
  };

  Status move(Entry& entry, std::span<const DevicePtr> addresses);
  Status prepare(Entry& entry, LaunchMode mode);
  Status evict();

  Backend& backend_;
  std::list<Entry> entries_;  // most recently used first
  GraphCacheCounters counters_;
};

// Does the result of the fused nodes [first, first + count) share memory with anything that they read from outside?
// Their order within one kernel is then not that of the graph.
bool overwrites_operands(const Graph& graph, int first, int count, const Bindings& bindings);

}  // namespace cudabk
