// Graphs that a caller recognises by a key of its own: one seen before is run without being built again.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <unordered_map>
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
  int64_t hits = 0;     // runs of a graph at addresses where it ran before
  int64_t moved = 0;    // runs of a known graph at other addresses
  int64_t added = 0;    // graphs planned
  int64_t evicted = 0;  // graphs given up for others
  int64_t unfused = 0;  // fusions given up since the result lies in the memory of an operand
};

// A graph is kept once for every set of addresses: the layers of a model are the same graph with other weights. The
// first run at some addresses is launch by launch; from the second on it is one executable graph, in a backend of that
// mode. At most BackendOptions::max_cached_graphs are kept, the least recently used one goes first. Different root
// tensors may overlap in memory as the lifetimes of their values allow: a fusion whose result would overwrite operands
// of its group is not made.
class GraphCache {
 public:
  explicit GraphCache(Backend& backend) : backend_(backend) {}  // not owned

  // Runs the graph of this key at these addresses on the backend's stream, without waiting. False: there is none, or
  // none that can be used at these addresses. An error forgets the graph.
  Result<bool> run(const GraphKey& key, std::span<const DevicePtr> addresses);
  // Plans and keeps a graph that run() did not find, and runs it. The execution lives until it is evicted.
  Result<const Execution*> add(const GraphKey& key, KeyedGraph graph, std::span<const DevicePtr> addresses);
  const Graph& newest() const { return entries_.front().keyed->graph; }  // what add() or run() ran last
  const GraphCacheCounters& counters() const { return counters_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    GraphKey key;
    std::shared_ptr<KeyedGraph> keyed;  // shared by the entries of one plan
    std::vector<DevicePtr> addresses;
    std::unique_ptr<Execution> execution;
    bool has_products = false;  // of a library, whose executable graphs hold a workspace each
  };
  using Entries = std::list<Entry>;

  Entries::iterator find(const GraphKey& key, std::span<const DevicePtr> addresses);
  Result<bool> run_moved(const GraphKey& key, std::span<const DevicePtr> addresses);
  Status run_again(Entry& entry);
  Status keep(Entry entry);
  void forget(Entries::iterator entry);
  Status prepare(Entry& entry);

  Backend& backend_;
  Entries entries_;                                                // most recently used first
  std::unordered_multimap<uint64_t, Entries::iterator> by_place_;  // hash of key and addresses
  int graphs_with_products_ = 0;                                   // executable ones
  GraphCacheCounters counters_;
};

// Does the result of the fused nodes [first, first + count) share memory with anything that they read from outside?
// Their order within one kernel is then not that of the graph.
bool overwrites_operands(const Graph& graph, int first, int count, const Bindings& bindings);

}  // namespace cudabk
