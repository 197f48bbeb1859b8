#include "backend/graph_cache.h"

#include <algorithm>

namespace cudabk {
namespace {

// Executable graphs that may hold a workspace of a library, tens of megabytes, at a time.
constexpr int kMaxGraphsWithProducts = 16;

Bindings bindings_of(const KeyedGraph& keyed, std::span<const DevicePtr> addresses) {
  Bindings bindings;
  bindings.tensors.assign(keyed.graph.tensors().size(), nullptr);
  for (const auto& [tensor, address] : keyed.roots) {
    bindings.tensors[tensor] = addresses[address];
  }
  return bindings;
}

// First nodes of the fusions of `plan` that these addresses forbid.
std::vector<int> forbidden_fusions(const Graph& graph, const Plan& plan, const Bindings& bindings) {
  std::vector<int> forbidden;
  for (const FusionRecord& fusion : plan.fusions) {
    if (fusion.count > 1 && overwrites_operands(graph, fusion.node, fusion.count, bindings)) {
      forbidden.push_back(fusion.node);
    }
  }
  return forbidden;
}

bool has_gemm(const Plan& plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(),
                     [](const PlannedLaunch& l) { return std::holds_alternative<GemmWork>(l.launch.work); });
}

uint64_t place_of(const GraphKey& key, std::span<const DevicePtr> addresses) {
  uint64_t hash = key.low;
  for (const DevicePtr address : addresses) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(address)) * 0x9e3779b97f4a7c15ULL;  // the golden ratio's fraction
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

bool overwrites_operands(const Graph& graph, int first, int count, const Bindings& bindings) {
  const auto group = std::span(graph.nodes()).subspan(first, count);
  const auto begin = [&](const Tensor& t) { return bindings.tensors[t.root().id] + t.view_offset; };
  const Tensor& result = *group.back();
  for (const Tensor* node : group) {
    for (const Tensor* s : node->src) {
      const bool inner = std::find(group.begin(), group.end(), s) != group.end();
      if (!inner && begin(*s) < begin(result) + byte_size(result) && begin(result) < begin(*s) + byte_size(*s)) {
        return true;
      }
    }
  }
  return false;
}

GraphCache::Entries::iterator GraphCache::find(const GraphKey& key, std::span<const DevicePtr> addresses) {
  const auto [first, last] = by_place_.equal_range(place_of(key, addresses));
  const auto found = std::find_if(first, last, [&](const auto& item) {
    const Entry& e = *item.second;
    return e.key == key && std::equal(addresses.begin(), addresses.end(), e.addresses.begin(), e.addresses.end());
  });
  return found == last ? entries_.end() : found->second;
}

void GraphCache::forget(Entries::iterator entry) {
  const auto [first, last] = by_place_.equal_range(place_of(entry->key, entry->addresses));
  by_place_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == entry; }));
  graphs_with_products_ -= entry->has_products && entry->execution->mode() == LaunchMode::kGraph ? 1 : 0;
  entries_.erase(entry);
}

Result<bool> GraphCache::run(const GraphKey& key, std::span<const DevicePtr> addresses) {
  const auto found = find(key, addresses);
  if (found == entries_.end()) {
    return run_moved(key, addresses);
  }
  entries_.splice(entries_.begin(), entries_, found);
  if (Status status = run_again(*found); !status.ok()) {
    forget(found);
    return std::move(status).error();
  }
  ++counters_.hits;
  return true;
}

Status GraphCache::run_again(Entry& entry) {
  const bool wants_graph =
      backend_.options().mode == LaunchMode::kGraph && entry.execution->mode() == LaunchMode::kEager;
  if (wants_graph && (!entry.has_products || graphs_with_products_ < kMaxGraphsWithProducts)) {
    entry.execution->use_graph();
    graphs_with_products_ += entry.has_products && entry.execution->mode() == LaunchMode::kGraph ? 1 : 0;
  }
  return entry.execution->run(backend_.stream());
}

// The plan of another entry of this key, bound to these addresses.
Result<bool> GraphCache::run_moved(const GraphKey& key, std::span<const DevicePtr> addresses) {
  for (const Entry& known : entries_) {
    if (known.key != key) {
      continue;
    }
    const Bindings bindings = bindings_of(*known.keyed, addresses);
    if (!forbidden_fusions(known.keyed->graph, known.execution->plan(), bindings).empty()) {
      continue;
    }
    Entry entry{key, known.keyed, {addresses.begin(), addresses.end()}, nullptr, known.has_products};
    CUDABK_ASSIGN(entry.execution, known.execution->at(known.keyed->graph, bindings));
    CUDABK_TRY(keep(std::move(entry)));
    ++counters_.moved;
    return true;
  }
  return false;
}

Result<const Execution*> GraphCache::add(const GraphKey& key, KeyedGraph graph, std::span<const DevicePtr> addresses) {
  Entry entry{key, std::make_shared<KeyedGraph>(std::move(graph)), {addresses.begin(), addresses.end()}, nullptr};
  CUDABK_TRY(prepare(entry));
  entry.has_products = has_gemm(entry.execution->plan());
  CUDABK_TRY(keep(std::move(entry)));
  ++counters_.added;
  return entries_.front().execution.get();
}

// Plans without the fusions that the addresses forbid.
Status GraphCache::prepare(Entry& entry) {
  const Bindings bindings = bindings_of(*entry.keyed, entry.addresses);
  const Graph& graph = entry.keyed->graph;
  for (;;) {
    CUDABK_ASSIGN(entry.execution, backend_.prepare(graph, bindings, LaunchMode::kEager));
    const std::vector<int> forbidden = forbidden_fusions(graph, entry.execution->plan(), bindings);
    if (forbidden.empty()) {
      return success();
    }
    for (const int node : forbidden) {
      graph.nodes()[node]->is_output = true;  // a result that must exist is not fused away
    }
    counters_.unfused += static_cast<int64_t>(forbidden.size());
  }
}

// Runs it, for the first time, and keeps it.
Status GraphCache::keep(Entry entry) {
  while (entries_.size() >= std::max<size_t>(backend_.options().max_cached_graphs, 1)) {
    CUDABK_TRY(backend_.synchronize());  // it may still run
    forget(std::prev(entries_.end()));
    ++counters_.evicted;
  }
  CUDABK_TRY(entry.execution->run(backend_.stream()));
  entries_.push_front(std::move(entry));
  by_place_.emplace(place_of(entries_.front().key, entries_.front().addresses), entries_.begin());
  return success();
}

}  // namespace cudabk
