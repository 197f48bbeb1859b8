#include "backend/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/frag_weights.h"

namespace cudabk {
namespace {

constexpr int64_t kAlignment = 256;    // of every tensor; the graph format asks for 128
constexpr int64_t kPadElements = 512;  // format: quantized rows may be read up to the next multiple of this
constexpr uint8_t kPoison = 0xff;      // NaN in every float format
constexpr uint8_t kGuard = 0xa5;

int64_t align_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Slot {
  const Tensor* tensor;
  int64_t offset;
};

}  // namespace

int64_t allocation_bytes(const Tensor& t) {
  if (t.layout == WeightLayout::kFrag) {
    return frag_tensor_bytes(t);
  }
  int64_t bytes = byte_size(t);
  const int64_t rest = t.ne[0] % kPadElements;
  if (bytes > 0 && is_quantized(t.type) && rest != 0) {
    const int64_t missing = (kPadElements - rest + block_elements(t.type) - 1) / block_elements(t.type);
    bytes += missing * block_bytes(t.type);
  }
  return bytes;
}

Result<GraphBuffers> GraphBuffers::allocate(Device& device, const Graph& graph, const BufferOptions& options) {
  GraphBuffers buffers;
  buffers.device_ = &device;
  buffers.graph_ = &graph;
  buffers.options_ = options;
  buffers.bindings_.tensors.assign(graph.tensors().size(), nullptr);
  const int64_t guard = options.poison ? align_up(options.guard_bytes) : 0;
  std::vector<Slot> slots[2];
  int64_t totals[2] = {0, 0};
  for (const auto& t : graph.tensors()) {
    if (t->view_src != nullptr) {
      continue;
    }
    const int which = t->usage == Usage::kWeights ? 0 : 1;
    slots[which].push_back({t.get(), totals[which]});
    totals[which] += align_up(std::max<int64_t>(allocation_bytes(*t), 1)) + guard;
  }
  for (int which = 0; which < 2; ++which) {
    if (totals[which] == 0) {
      continue;
    }
    auto memory = device.allocate(totals[which]);
    if (!memory.ok()) {
      return std::move(memory).error().with_context(which == 0 ? "weights" : "activations and results");
    }
    Memory& target = which == 0 ? buffers.weights_ : buffers.compute_;
    target = std::move(memory).value();
    CUDABK_TRY(device.fill(target.ptr(), options.poison ? kGuard : 0, totals[which]));
    for (const Slot& s : slots[which]) {
      const DevicePtr address = target.ptr() + s.offset;
      buffers.bindings_.tensors[s.tensor->id] = address;
      if (s.tensor->layout == WeightLayout::kFrag) {
        if (buffers.repacker_ == nullptr) {
          buffers.repacker_ = std::make_unique<Repacker>(device);
        }
        CUDABK_TRY(device.fill(address, 0, allocation_bytes(*s.tensor)));
        continue;
      }
      const int64_t tail = allocation_bytes(*s.tensor) - byte_size(*s.tensor);
      if (tail > 0) {
        CUDABK_TRY(device.fill(address + byte_size(*s.tensor), 0, tail));
      }
    }
  }
  if (options.poison) {
    CUDABK_TRY(buffers.poison_results());
  }
  return buffers;
}

DevicePtr GraphBuffers::address(const Tensor& t) const { return bindings_.tensors[t.root().id] + t.view_offset; }

Status GraphBuffers::upload(const Tensor& root, std::span<const std::byte> bytes, int64_t offset) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (offset < 0 || size > byte_size(root) - offset) {
    return internal_error(
        fmt::format("upload of {} bytes at {} into {} ({} bytes)", size, offset, describe(root), byte_size(root)));
  }
  if (bytes.empty()) {
    return success();
  }
  if (root.layout == WeightLayout::kFrag) {
    return repacker_->upload(root, address(root), bytes, offset);
  }
  return device_->upload(address(root) + offset, bytes.data(), size);
}

Status GraphBuffers::download(const Tensor& root, std::span<std::byte> bytes) {
  if (static_cast<int64_t>(bytes.size()) > byte_size(root)) {
    return internal_error(
        fmt::format("download of {} bytes from {} ({} bytes)", bytes.size(), describe(root), byte_size(root)));
  }
  if (bytes.empty()) {
    return success();
  }
  if (root.layout == WeightLayout::kFrag) {
    return repacker_->download(root, address(root), bytes);
  }
  return device_->download(bytes.data(), address(root), static_cast<int64_t>(bytes.size()));
}

Status GraphBuffers::poison_results() {
  for (const Tensor* t : graph_->nodes()) {
    if (t->view_src == nullptr && byte_size(*t) > 0) {
      CUDABK_TRY(device_->fill(address(*t), kPoison, byte_size(*t)));
    }
  }
  return success();
}

Status GraphBuffers::check_guards() {
  if (!options_.poison) {
    return success();
  }
  const int64_t guard = align_up(options_.guard_bytes);
  std::vector<uint8_t> bytes(static_cast<size_t>(guard));
  for (const auto& t : graph_->tensors()) {
    if (t->view_src != nullptr) {
      continue;
    }
    const DevicePtr start = address(*t) + align_up(std::max<int64_t>(allocation_bytes(*t), 1));
    CUDABK_TRY(device_->download(bytes.data(), start, guard));
    const auto bad = std::find_if(bytes.begin(), bytes.end(), [](uint8_t b) { return b != kGuard; });
    if (bad != bytes.end()) {
      return Error{ErrorKind::kWrongOutput,
                   fmt::format("byte {} behind {} ({}) was overwritten", bad - bytes.begin(), t->name, describe(*t))};
    }
  }
  return success();
}

}  // namespace cudabk
