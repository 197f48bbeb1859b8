#include "measure/graph_nodes.h"

namespace cudabk {

void GraphNodeChains::created(uint64_t id, NodeType type) {
  const std::lock_guard lock(mutex_);
  nodes_.try_emplace(id, Node{0, type});  // a clone may have been announced first
}

void GraphNodeChains::cloned(uint64_t clone, uint64_t original, NodeType type) {
  const std::lock_guard lock(mutex_);
  nodes_[clone] = Node{original, type};
}

std::optional<size_t> GraphNodeChains::resolve(uint64_t id, const std::map<uint64_t, size_t>& roots) const {
  const std::lock_guard lock(mutex_);
  for (size_t steps = 0; id != 0 && steps <= nodes_.size(); ++steps) {
    if (const auto root = roots.find(id); root != roots.end()) {
      return root->second;
    }
    const auto node = nodes_.find(id);
    if (node == nodes_.end()) {
      return std::nullopt;
    }
    id = node->second.original;
  }
  return std::nullopt;
}

std::optional<GraphNodeChains::NodeType> GraphNodeChains::type(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) {
    return std::nullopt;
  }
  return node->second.type;
}

size_t GraphNodeChains::size() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

void GraphNodeChains::clear() {
  const std::lock_guard lock(mutex_);
  nodes_.clear();
}

}  // namespace cudabk
