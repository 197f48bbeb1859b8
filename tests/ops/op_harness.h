// Runs one case of an op on the emulated device, node by node, and compares every node with the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "device/device.h"
#include "graph/graph.h"
#include "ops/op_def.h"

namespace cudabk::test {

// Lowering without a planner: names tensors by their id, has no scratch and no tables.
class PlainLowerContext final : public LowerContext {
 public:
  explicit PlainLowerContext(const DeviceInfo& device) : device_(device) {}
  const DeviceInfo& device() const override { return device_; }
  BufferRef data(const Tensor& t) override { return {BufferRef::Kind::kTensor, t.id, 0}; }
  BufferRef stored(const Tensor& root) override { return {BufferRef::Kind::kTensor, root.id, 0}; }
  BufferRef scratch(int64_t) override { return {}; }
  Shared shared_scratch(const Tensor&, std::string_view, int64_t) override { return {}; }
  int readers(const Tensor&) const override { return 1; }
  Result<Choice> choose(const OpDef& op, const Problem&) override {
    return internal_error(std::string(op.name()) + ": these ops have a single path");
  }

 private:
  const DeviceInfo& device_;
};

// What is checked after every node: guard zones around every allocation and every byte that the result does not cover
// are unchanged, and the result is within the op's tolerance of the reference, evaluated on the bytes that were in
// memory before. Memory between the elements of sources holds NaN; results start poisoned.
class OpHarness {
 public:
  static Result<std::unique_ptr<OpHarness>> open(DeviceOptions::ThreadOrder order, uint64_t seed);

  // kWrongOutput with node, element and both values; any other error as it came. A case that `supports` refuses is an
  // error too.
  Status check_case(const OpDef& op, const CaseParams& params);
  Status check_graph(const Graph& graph);
  // One launch that computes `node` and swallows the nodes before it: they are not run, their memory stays poisoned.
  Status check_fused(const Graph& graph, const Tensor& node, const std::function<Result<Launch>(LowerContext&)>& lower);

  // Called on every kernel launch before it runs; tests plant faults with it.
  std::function<void(KernelWork&)> tamper;

  // What lowering takes the device for; a small one makes it choose as for a large problem.
  DeviceInfo& lowering_device() { return info_; }
  int launches() const { return launches_; }  // since the start

 private:
  struct Allocation {
    Memory memory;
    std::vector<std::byte> image;  // guard, tensor, guard: as last seen on the device
    bool has_values = false;       // a leaf, or written by a node that ran
  };

  Status allocate(const Graph& graph);
  Status run_node(const Graph& graph, const Tensor& node);
  Status run_launch(const Graph& graph, const Launch& launch);
  Status check_node(const Graph& graph, const Tensor& node);

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  DeviceInfo info_;
  uint64_t seed_ = 0;
  std::vector<Allocation> allocations_;  // by Tensor::id of root tensors
  int launches_ = 0;
};

}  // namespace cudabk::test
