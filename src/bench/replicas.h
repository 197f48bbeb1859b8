// The independent ops of one replay, with their memory and data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/buffers.h"
#include "bench/cases.h"
#include "core/result.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/init.h"
#include "measure/cache_control.h"

namespace cudabk {

struct ReplicaOptions {
  int copies = 1;
  bool share_weights = false;      // hot: every op reads the same weights ...
  bool share_activations = false;  // ... or the same activations
  uint64_t seed = 42;
  Distribution distribution;
  std::optional<PlanOptions> layouts;              // weights are laid out for such a plan; without it all are raw
  bool poison = true;                              // results start as NaN, guard zones behind tensors
  const std::atomic<bool>* interrupted = nullptr;  // looked at between tensors, which may be gigabytes: kInterrupted
};

// N copies of a case's op in one graph. Copy 0 gets random data from the seed: weights with a standard deviation of
// 1/sqrt(row length), activations of 1. The others get bytes of their own at little cost: large tensors are copy 0's
// with the rows rotated (so every weight row keeps a valid encoding), small ones are drawn anew.
class Replicas {
 public:
  static Result<std::unique_ptr<Replicas>> create(Device& device, const BenchCase& c, const ReplicaOptions& options);

  const Graph& graph() const { return graph_; }
  const Bindings& bindings() const { return bindings_; }
  int copies() const { return options_.copies; }
  const Tensor& output(int copy) const { return *outputs_[static_cast<size_t>(copy)]; }
  // All tensors of a copy, in building order.
  std::vector<const Tensor*> tensors(int copy) const;

  // What a leaf of the graph was filled with.
  Result<std::vector<std::byte>> leaf_bytes(const Tensor& leaf) const;
  // Blocks. Device memory of a root tensor, byte_size(root) bytes, in the raw
  // layout.
  Result<std::vector<std::byte>> download(const Tensor& root) const;
  Status check_guards() { return buffers_->check_guards(); }
  Status poison_results() { return buffers_->poison_results(); }

  RepackStats repacked() const { return buffers_->repacked(); }
  std::string layout() const;  // "frag" where a weight tensor of copy 0 is packed, else "raw"
  int64_t weight_bytes() const { return weight_bytes_; }    // distinct, per replay
  int64_t touched_bytes() const { return touched_bytes_; }  // distinct, weights and everything else

 private:
  explicit Replicas(Device& device, const ReplicaOptions& options) : device_(device), options_(options) {}
  Status build(const BenchCase& c);
  Status allocate(const BenchCase& c);
  Status upload();
  const Tensor& original(const Tensor& t) const;  // the same tensor of copy 0
  int copy_of(const Tensor& t) const { return t.id / tensors_per_copy_; }
  bool shared(const Tensor& leaf) const;
  Result<std::vector<std::byte>> generate(const Tensor& leaf, int copy) const;
  void rotate(const Tensor& leaf, int copy, const std::vector<std::byte>& base, std::vector<std::byte>& out) const;

  Device& device_;
  ReplicaOptions options_;
  Graph graph_;
  Graph storage_graph_;  // hot: memory for one copy only
  std::unique_ptr<GraphBuffers> buffers_;
  Bindings bindings_;
  std::vector<Tensor*> outputs_;
  int tensors_per_copy_ = 0;
  int64_t weight_bytes_ = 0, touched_bytes_ = 0;
};

// Bytes of one copy of the case's op: what it reads of its weights, and of all its tensors; the memory of these.
struct CopyBytes {
  int64_t weights = 0, touched = 0, memory = 0;
};
Result<CopyBytes> bytes_per_copy(const BenchCase& c, const DeviceInfo& device, const PlanOptions& layouts);

// How many copies a replay of the case needs on this device, with the memory that is free now; at most `max_copies`.
// Weights are laid out as for a plan of `layouts`.
Result<FootprintPlan> case_footprint(Device& device, const BenchCase& c, CacheMode mode, int64_t max_copies,
                                     const PlanOptions& layouts);

}  // namespace cudabk
