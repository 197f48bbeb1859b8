#include "backend/graph_cache.h"

#include <algorithm>

namespace cudabk {
namespace {

Bindings bindings_of(const KeyedGraph& keyed, std::span<const DevicePtr> addresses) {
  Bindings bindings;
  bindings.tensors.assign(keyed.graph.tensors().size(), nullptr);
  for (const auto& [tensor, address] : keyed.roots) {
    bindings.tensors[tensor] = addresses[address];
  }
  return bindings;
}

// Fusions of `plan` that these addresses forbid lose their intermediate results' freedom. How many there were.
int forbid_overlapping(KeyedGraph& keyed, const Plan& plan, const Bindings& bindings) {
  int forbidden = 0;
  for (const FusionRecord& fusion : plan.fusions) {
    if (fusion.count > 1 && overwrites_operands(keyed.graph, fusion.node, fusion.count, bindings)) {
      keyed.graph.nodes()[fusion.node]->is_output = true;
      ++forbidden;
    }
  }
  return forbidden;
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

Result<bool> GraphCache::run(const GraphKey& key, std::span<const DevicePtr> addresses) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (found == entries_.end()) {
    return false;
  }
  entries_.splice(entries_.begin(), entries_, found);
  Entry& entry = entries_.front();
  Status status;
  if (!std::equal(addresses.begin(), addresses.end(), entry.addresses.begin(), entry.addresses.end())) {
    status = move(entry, addresses);
  }
  if (status.ok()) {
    if (backend_.options().mode == LaunchMode::kGraph) {
      entry.execution->use_graph();
    }
    status = entry.execution->run(backend_.stream());
  }
  if (!status.ok()) {
    entries_.pop_front();
    return std::move(status).error();
  }
  ++counters_.hits;
  return true;
}

Result<const Execution*> GraphCache::add(const GraphKey& key, KeyedGraph graph, std::span<const DevicePtr> addresses) {
  Entry entry{key, std::move(graph), {addresses.begin(), addresses.end()}, nullptr};
  CUDABK_TRY(prepare(entry, LaunchMode::kEager));
  CUDABK_TRY(evict());
  CUDABK_TRY(entry.execution->run(backend_.stream()));
  entries_.push_front(std::move(entry));
  ++counters_.added;
  return entries_.front().execution.get();
}

Status GraphCache::move(Entry& entry, std::span<const DevicePtr> addresses) {
  ++counters_.patched;
  entry.addresses.assign(addresses.begin(), addresses.end());
  const Bindings bindings = bindings_of(entry.keyed, addresses);
  if (const int forbidden = forbid_overlapping(entry.keyed, entry.execution->plan(), bindings); forbidden > 0) {
    counters_.unfused += forbidden;
    CUDABK_TRY(backend_.synchronize());  // the old one may still run
    return prepare(entry, backend_.options().mode);
  }
  return entry.execution->rebind(entry.keyed.graph, bindings);
}

Status GraphCache::prepare(Entry& entry, LaunchMode mode) {
  const Bindings bindings = bindings_of(entry.keyed, entry.addresses);
  for (;;) {
    CUDABK_ASSIGN(entry.execution, backend_.prepare(entry.keyed.graph, bindings, mode));
    const int forbidden = forbid_overlapping(entry.keyed, entry.execution->plan(), bindings);
    if (forbidden == 0) {
      return success();
    }
    counters_.unfused += forbidden;
  }
}

Status GraphCache::evict() {
  while (entries_.size() >= std::max<size_t>(backend_.options().max_cached_graphs, 1)) {
    CUDABK_TRY(backend_.synchronize());  // it may still run
    entries_.pop_back();
    ++counters_.evicted;
  }
  return success();
}

}  // namespace cudabk
