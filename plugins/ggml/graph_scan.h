// One pass over the nodes of a ggml graph: what a plan depends on as a key, and the addresses that it does not depend
// on. This is all that a graph seen before costs, besides its launch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/graph_cache.h"
#include "ggml_headers.h"

namespace cudabk::plugin {

// What ggml does not say of a root tensor.
struct RootTraits {
  bool weights = false;  // constant while graphs run
  bool packed = false;   // its memory has the packed layout
  bool foreign = false;  // it is not in a buffer of the device
};

class GraphScan {
 public:
  // `traits(root)` is asked once per root tensor. Keeps its memory between calls.
  template <class Traits>
  void scan(std::span<ggml_tensor* const> nodes, const ggml_cgraph* graph, const Traits& traits) {
    reset();
    for (const ggml_tensor* node : nodes) {
      add_node(*node, traits);
    }
    finish(graph);
  }

  const GraphKey& key() const { return key_; }
  bool has_work() const { return has_work_; }  // of any node
  // By root index, in the order in which roots were met.
  const std::vector<DevicePtr>& addresses() const { return addresses_; }
  const std::vector<const ggml_tensor*>& roots() const { return roots_; }
  const std::vector<RootTraits>& root_traits() const { return root_traits_; }
  int root_index(const ggml_tensor& root) const { return items_[id_of(root)].root; }
  // By id: tensors in the order in which they were met, sources before their node.
  int id_of(const ggml_tensor& t) const;  // of a tensor that was met
  size_t tensor_count() const { return items_.size(); }
  // The value must exist after the graph ran: it is an output, or read elsewhere, or through a view.
  bool must_exist(const ggml_tensor& t) const { return items_[id_of(t)].must_exist; }

 private:
  struct Item {
    const ggml_tensor* tensor;
    int root;  // index; -1 for views
    int uses = 0;
    bool is_node = false, must_exist = false;
  };
  struct Slot {
    const ggml_tensor* tensor = nullptr;
    uint32_t round = 0;  // of the scan that filled it
    int id = 0;
  };

  void reset();
  Slot& slot_of(const ggml_tensor* t);
  void grow();
  void mix(uint64_t word);
  void mix_shape(const ggml_tensor& t);
  void mix_node(const ggml_tensor& node, int id, bool works);
  void finish(const ggml_cgraph* graph);
  void use(int id, bool counts) { items_[id].uses += counts ? 1 : 0; }

  template <class Traits>
  void add_node(const ggml_tensor& node, const Traits& traits) {
    const int id = visit(node, traits);
    const bool first = !items_[id].is_node;  // a graph may hold a node several times
    items_[id].is_node = true;
    const bool works = plugin::has_work(node);
    has_work_ |= works;
    mix_node(node, id, works);
    for (const ggml_tensor* s : node.src) {
      if (s != nullptr) {
        const int source = visit(*s, traits);
        use(source, first);
        mix(static_cast<uint64_t>(source));
      }
    }
  }

  template <class Traits>
  int visit(const ggml_tensor& t, const Traits& traits) {
    Slot& slot = slot_of(&t);
    if (slot.tensor == &t && slot.round == round_) {
      return slot.id;
    }
    const int id = static_cast<int>(items_.size());
    slot = {&t, round_, id};
    items_.push_back({&t, -1});
    mix_shape(t);
    if (t.view_src != nullptr) {
      const int root = visit(*t.view_src, traits);
      items_[root].must_exist = true;
      mix(static_cast<uint64_t>(root) << 1 | 1);
      mix(t.view_offs);
    } else {
      const RootTraits root = traits(t);
      root_traits_.push_back(root);
      mix(uint64_t{root.weights} << 1 | uint64_t{root.packed} << 2 | uint64_t{root.foreign} << 3);
      items_[id].root = static_cast<int>(roots_.size());
      roots_.push_back(&t);
      addresses_.push_back(static_cast<DevicePtr>(t.data));
    }
    return id;
  }

  GraphKey key_;
  std::vector<Item> items_;
  std::vector<const ggml_tensor*> roots_;
  std::vector<RootTraits> root_traits_;
  std::vector<DevicePtr> addresses_;
  std::vector<Slot> table_;  // open addressing; a power of two
  uint32_t round_ = 0;
  bool has_work_ = false;
};

}  // namespace cudabk::plugin
