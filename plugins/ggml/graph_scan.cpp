#include "graph_scan.h"

namespace cudabk::plugin {
namespace {

constexpr size_t kSmallestTable = 1024;
// Odd 64-bit constants with balanced bits (fractions of the golden ratio and of the square root of 3).
constexpr uint64_t kFactorLow = 0x9e3779b97f4a7c15ULL, kFactorHigh = 0xbb67ae8584caa73bULL;

uint64_t folded_product(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_of(const ggml_tensor* t) { return (reinterpret_cast<uintptr_t>(t) >> 4) * kFactorLow >> 20; }

}  // namespace

void GraphScan::reset() {
  key_ = {kFactorHigh, kFactorLow};
  items_.clear();
  roots_.clear();
  root_traits_.clear();
  addresses_.clear();
  has_work_ = false;
  ++round_;
  if (table_.empty()) {
    table_.resize(kSmallestTable);
  }
}

// The slot of `t`, or the free one where it belongs. A reference lasts until the next call.
GraphScan::Slot& GraphScan::slot_of(const ggml_tensor* t) {
  if (items_.size() * 2 >= table_.size()) {
    grow();
  }
  for (size_t i = hash_of(t);; ++i) {
    Slot& slot = table_[i & (table_.size() - 1)];
    if (slot.round != round_ || slot.tensor == t) {
      return slot;
    }
  }
}

void GraphScan::grow() {
  std::vector<Slot> old(table_.size() * 2);
  old.swap(table_);
  for (const Slot& slot : old) {
    if (slot.round != round_) {
      continue;
    }
    size_t i = hash_of(slot.tensor);
    while (table_[i & (table_.size() - 1)].round == round_) {
      ++i;
    }
    table_[i & (table_.size() - 1)] = slot;
  }
}

int GraphScan::id_of(const ggml_tensor& t) const {
  for (size_t i = hash_of(&t);; ++i) {
    const Slot& slot = table_[i & (table_.size() - 1)];
    if (slot.tensor == &t && slot.round == round_) {
      return slot.id;
    }
  }
}

void GraphScan::mix(uint64_t word) {
  key_.low = folded_product(key_.low ^ word, kFactorLow);
  key_.high = folded_product(key_.high + word, kFactorHigh) ^ word;
}

void GraphScan::mix_shape(const ggml_tensor& t) {
  mix(static_cast<uint64_t>(t.type));
  for (int i = 0; i < 4; ++i) {
    mix(static_cast<uint64_t>(t.ne[i]));
    mix(t.nb[i]);
  }
}

void GraphScan::mix_node(const ggml_tensor& node, int id, bool works) {
  constexpr size_t kWords = sizeof(node.op_params) / (sizeof(uint64_t));
  mix(static_cast<uint64_t>(node.op) << 33 | static_cast<uint64_t>(id) << 1 | uint64_t{works});
  uint64_t params[kWords];
  __builtin_memcpy(params, node.op_params, sizeof(params));
  for (const uint64_t word : params) {
    mix(word);
  }
}

// What nobody outside reads may stay unwritten by a fusion. ggml counts readers in the whole graph, of which the nodes
// here may be a part.
void GraphScan::finish(const ggml_cgraph* graph) {
  const bool counted = graph != nullptr && graph->use_counts != nullptr && graph->visited_hash_set.size > 0;
  uint64_t bits = 1;
  for (Item& item : items_) {
    if (!item.is_node) {
      continue;
    }
    int uses = -1;
    if (counted) {
      const size_t place = ggml_hash_find(&graph->visited_hash_set, item.tensor);
      if (place != GGML_HASHSET_FULL && ggml_bitset_get(graph->visited_hash_set.used, place)) {
        uses = graph->use_counts[place];
      }
    }
    item.must_exist |= uses != item.uses || (item.tensor->flags & GGML_TENSOR_FLAG_OUTPUT) != 0;
    bits = bits << 1 | uint64_t{item.must_exist};
    if (bits >> 63 != 0) {
      mix(bits);
      bits = 1;
    }
  }
  mix(bits);
}

}  // namespace cudabk::plugin
