// From the node of an executable CUDA graph back to the launch it came from. Building and instantiating a graph clones
// its nodes, perhaps more than once; profiler records name the last clone. Pure bookkeeping over ids: needs no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace cudabk {

class GraphNodeChains {
 public:
  enum class NodeType { kKernel, kMemset, kMemcpy, kOther };  // kOther leaves no activity record

  void created(uint64_t id, NodeType type);
  void cloned(uint64_t clone, uint64_t original, NodeType type);

  // Walks from `id` through its originals to the first that is a key of `roots`; its launch, or nullopt. Ends on a
  // cycle.
  std::optional<size_t> resolve(uint64_t id, const std::map<uint64_t, size_t>& roots) const;
  // nullopt for a node that was never announced.
  std::optional<NodeType> type(uint64_t id) const;

  size_t size() const;
  void clear();

 private:
  struct Node {
    uint64_t original = 0;  // 0: not a clone
    NodeType type = NodeType::kOther;
  };
  mutable std::mutex mutex_;  // callbacks come from any thread that builds graphs
  std::unordered_map<uint64_t, Node> nodes_;
};

}  // namespace cudabk
