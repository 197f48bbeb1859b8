#include "bench/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/layouts.h"

namespace cudabk {
namespace {

// Below this size, or with fewer rows, a copy's tensor is drawn anew instead of rotated.
constexpr int64_t kRotateFromBytes = 64 << 10;
constexpr int64_t kRotateFromRows = 64;
// A step that visits every row before it repeats, for every number of rows that is not a multiple of it (a prime).
constexpr int64_t kRotateStep = 7919;

bool is_leaf(const Tensor& t) { return t.op == kOpNone; }
bool is_root(const Tensor& t) { return t.view_src == nullptr; }

bool rotates(const Tensor& leaf) { return byte_size(leaf) >= kRotateFromBytes && row_count(leaf) >= kRotateFromRows; }

// Of a root tensor in its layout, without what follows it.
int64_t stored_bytes(const Tensor& t) { return t.layout == WeightLayout::kFrag ? allocation_bytes(t) : byte_size(t); }

bool is_index(DType type) {
  return type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
}

}  // namespace

Result<std::unique_ptr<Replicas>> Replicas::create(Device& device, const BenchCase& c, const ReplicaOptions& options) {
  std::unique_ptr<Replicas> replicas(new Replicas(device, options));
  CUDABK_TRY(replicas->build(c));
  CUDABK_TRY(replicas->allocate(c));
  CUDABK_TRY(replicas->upload());
  return replicas;
}

Status Replicas::build(const BenchCase& c) {
  for (int copy = 0; copy < options_.copies; ++copy) {
    CUDABK_ASSIGN(Tensor * output, c.op->build(graph_, c.params));
    output->is_output = true;
    outputs_.push_back(output);
    const auto built = static_cast<int>(graph_.tensors().size());
    if (copy == 0) {
      tensors_per_copy_ = built;
    } else if (built != tensors_per_copy_ * (copy + 1)) {
      return internal_error(fmt::format("{}: copies differ in their number of tensors", c.target));
    }
  }
  if (options_.layouts) {
    choose_layouts(graph_, device_.info(), *options_.layouts);
  }
  return success();
}

std::string Replicas::layout() const {
  const std::vector<const Tensor*> own = tensors(0);
  const bool packed =
      std::any_of(own.begin(), own.end(), [](const Tensor* t) { return t->layout == WeightLayout::kFrag; });
  return packed ? "frag" : "raw";
}

Status Replicas::allocate(const BenchCase& c) {
  const BufferOptions buffer_options{options_.poison};
  const bool one_copy = options_.share_weights && options_.share_activations;
  if (one_copy) {
    CUDABK_ASSIGN(Tensor * output, c.op->build(storage_graph_, c.params));
    output->is_output = true;
    if (options_.layouts) {
      choose_layouts(storage_graph_, device_.info(), *options_.layouts);
    }
  }
  CUDABK_ASSIGN(GraphBuffers buffers,
                GraphBuffers::allocate(device_, one_copy ? storage_graph_ : graph_, buffer_options));
  buffers_ = std::make_unique<GraphBuffers>(std::move(buffers));
  const Bindings& stored = buffers_->bindings();
  bindings_.tensors.assign(graph_.tensors().size(), nullptr);
  for (const auto& t : graph_.tensors()) {
    if (!is_root(*t)) {
      continue;
    }
    const bool use_first = one_copy || (is_leaf(*t) && shared(*t));
    const int stored_id = use_first ? t->id % tensors_per_copy_ : t->id;
    bindings_.tensors[static_cast<size_t>(t->id)] = stored.tensors[static_cast<size_t>(stored_id)];
    if (!use_first || copy_of(*t) == 0) {
      touched_bytes_ += stored_bytes(*t);
      weight_bytes_ += t->usage == Usage::kWeights ? stored_bytes(*t) : 0;
    }
  }
  return success();
}

bool Replicas::shared(const Tensor& leaf) const {
  return leaf.usage == Usage::kWeights ? options_.share_weights : options_.share_activations;
}

const Tensor& Replicas::original(const Tensor& t) const {
  return *graph_.tensors()[static_cast<size_t>(t.id % tensors_per_copy_)];
}

std::vector<const Tensor*> Replicas::tensors(int copy) const {
  std::vector<const Tensor*> list;
  const auto count = static_cast<size_t>(tensors_per_copy_);
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    list.push_back(graph_.tensors()[static_cast<size_t>(copy) * count + i].get());
  }
  return list;
}

Result<std::vector<std::byte>> Replicas::generate(const Tensor& leaf, int copy) const {
  std::vector<std::byte> bytes(static_cast<size_t>(byte_size(leaf)));
  const uint64_t seed = tensor_seed(options_.seed, leaf.id % tensors_per_copy_ + copy * tensors_per_copy_);
  if (is_index(leaf.type) && leaf.index_limit > 0) {
    CUDABK_TRY(fill_indices({leaf.type, leaf.index_limit, leaf.ne[0], seed}, bytes));
    return bytes;
  }
  if (bytes.empty() || is_index(leaf.type)) {
    return bytes;
  }
  RandomFill fill;
  fill.type = leaf.type;
  const bool weights = leaf.usage == Usage::kWeights;
  fill.stddev = weights ? 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(leaf.ne[0], 1))) : 1.0;
  fill.stddev *= leaf.init_scale;
  if (!weights || !is_quantized(leaf.type)) {
    fill.distribution = options_.distribution;
  }
  fill.seed = seed;
  if (Status filled = fill_random(fill, bytes); !filled.ok()) {
    return std::move(filled).error().with_context(leaf.name);
  }
  return bytes;
}

void Replicas::rotate(const Tensor& leaf, int copy, const std::vector<std::byte>& base,
                      std::vector<std::byte>& out) const {
  const int64_t rows = row_count(leaf);
  const auto shift = static_cast<size_t>(copy * kRotateStep % rows * row_bytes(leaf.type, leaf.ne[0]));
  out.resize(base.size());
  std::memcpy(out.data(), base.data() + shift, base.size() - shift);
  std::memcpy(out.data() + base.size() - shift, base.data(), shift);
}

Result<std::vector<std::byte>> Replicas::leaf_bytes(const Tensor& leaf) const {
  const int copy = shared(leaf) ? 0 : copy_of(leaf);
  const bool rotated = copy > 0 && rotates(leaf);
  CUDABK_ASSIGN(std::vector<std::byte> bytes, generate(original(leaf), rotated ? 0 : copy));
  if (rotated) {
    const std::vector<std::byte> base = std::move(bytes);
    rotate(leaf, copy, base, bytes);
  }
  return bytes;
}

Status Replicas::upload() {
  const bool one_copy = options_.share_weights && options_.share_activations;
  const Graph& target = one_copy ? storage_graph_ : graph_;
  for (int i = 0; i < tensors_per_copy_; ++i) {
    const Tensor& first = *target.tensors()[static_cast<size_t>(i)];
    if (!is_leaf(first) || !is_root(first) || is_empty(first)) {
      continue;
    }
    CUDABK_ASSIGN(const std::vector<std::byte> base, generate(first, 0));
    CUDABK_TRY(buffers_->upload(first, base));
    if (one_copy || shared(first)) {
      continue;
    }
    std::vector<std::byte> bytes;
    for (int copy = 1; copy < options_.copies; ++copy) {
      const Tensor& leaf =
          *graph_
               .tensors()[static_cast<size_t>(i) + static_cast<size_t>(copy) * static_cast<size_t>(tensors_per_copy_)];
      if (rotates(leaf)) {
        rotate(leaf, copy, base, bytes);
      } else {
        CUDABK_ASSIGN(bytes, generate(leaf, copy));
      }
      CUDABK_TRY(buffers_->upload(leaf, bytes));
      if (options_.interrupted != nullptr && *options_.interrupted) {
        return Error{ErrorKind::kInterrupted, "interrupted while memory was filled"};
      }
    }
  }
  return success();
}

Result<std::vector<std::byte>> Replicas::download(const Tensor& root) const {
  std::vector<std::byte> bytes(static_cast<size_t>(byte_size(root)));
  const DevicePtr address = bindings_.tensors[static_cast<size_t>(root.id)];
  if (!bytes.empty() && root.layout == WeightLayout::kFrag) {
    CUDABK_TRY(Repacker(device_).download(root, address, bytes));
  } else if (!bytes.empty()) {
    CUDABK_TRY(device_.download(bytes.data(), address, static_cast<int64_t>(bytes.size())));
  }
  return bytes;
}

Result<CopyBytes> bytes_per_copy(const BenchCase& c, const DeviceInfo& device, const PlanOptions& layouts) {
  Graph graph;
  CUDABK_ASSIGN(const Tensor* output, c.op->build(graph, c.params));
  choose_layouts(graph, device, layouts);
  CopyBytes bytes;
  for (const auto& t : graph.tensors()) {
    if (is_root(*t)) {
      bytes.memory += stored_bytes(*t);
      bytes.weights += t->usage == Usage::kWeights ? stored_bytes(*t) : 0;
    }
  }
  // Of a table of which only some rows are read, or written, these are what a cache can hold.
  const Cost cost = c.op->cost(*output);
  bytes.weights = std::min<int64_t>(bytes.weights, std::llround(cost.weight_bytes));
  bytes.touched = std::min(bytes.memory, std::max<int64_t>(bytes.weights, std::llround(cost.bytes)));
  return bytes;
}

Result<FootprintPlan> case_footprint(Device& device, const BenchCase& c, CacheMode mode, int64_t max_copies,
                                     const PlanOptions& layouts) {
  CUDABK_ASSIGN(const CopyBytes bytes, bytes_per_copy(c, device.info(), layouts));
  CUDABK_ASSIGN(const auto memory, device.memory_free_total());
  FootprintRequest request;
  request.mode = mode;
  request.weight_bytes = bytes.weights;
  request.touched_bytes = bytes.touched;
  request.memory_bytes = bytes.memory;
  request.l2_bytes = device.info().l2_bytes;
  request.free_bytes = memory.first;
  request.emulated = device.info().emulated;
  request.max_copies = max_copies;
  return plan_footprint(request);
}

}  // namespace cudabk
