#include "plugin_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/buffers.h"
#include "ops/frag_weights.h"
#include "translate.h"
#include "tuning/family_set.h"

namespace cudabk::plugin {
namespace {

constexpr size_t kMaxAnswers = 1 << 16;  // of supports(), before it forgets all
constexpr size_t kMaxGraphs = 512;       // of a backend: a few for each layer of a large model

}  // namespace

PluginDevice::PluginDevice(const Settings& settings, int index)
    : settings_(settings), name_(fmt::format("CUDABK{}", index)), host_name_(name_ + "_Host") {}

Result<std::unique_ptr<PluginDevice>> PluginDevice::open(const std::string& device_name, int index,
                                                         const Settings& settings) {
  std::unique_ptr<PluginDevice> opened(new PluginDevice(settings, index));
  CUDABK_ASSIGN(opened->device_, open_device(device_name, settings.device_options));
  CUDABK_ASSIGN(opened->profile_,
                find_profile(opened->device_->info(), settings.profile_file, settings.profile_dir, family_set()));
  for (const std::string& warning : opened->profile_.warnings) {
    log_line("warning: " + warning);
  }
  opened->repacker_ = std::make_unique<Repacker>(*opened->device_);
  return opened;
}

BackendOptions PluginDevice::backend_options() const {
  BackendOptions options;
  options.plan.fusion = settings_.fusion;
  options.plan.disabled_rules = settings_.disabled_rules;
  options.plan.profile = &profile_;
  options.mode = settings_.graphs ? LaunchMode::kGraph : LaunchMode::kEager;
  options.max_cached_graphs = kMaxGraphs;
  return options;
}

bool PluginDevice::supports(const ggml_tensor& op) {
  if (is_view_node(op)) {
    return true;
  }
  for (const ggml_tensor* s : op.src) {
    if (s != nullptr && is_device_buffer(root_of(*s).buffer) && !is_buffer_of(root_of(*s).buffer, *this)) {
      return false;  // in the memory of another GPU
    }
  }
  auto* node = const_cast<ggml_tensor*>(&op);  // only read
  scan_.scan(std::span(&node, 1), nullptr, [](const ggml_tensor&) { return RootTraits{}; });
  if (const auto known = supported_.find(scan_.key().low); known != supported_.end()) {
    return known->second;
  }
  const Result<bool> found = find_support(op);
  if (settings_.explain && !found.ok()) {
    log_line(fmt::format("refused: {}", found.error().message));
  }
  if (supported_.size() >= kMaxAnswers) {
    supported_.clear();
  }
  return supported_[scan_.key().low] = found.ok();
}

// True, or an error that says why not.
Result<bool> PluginDevice::find_support(const ggml_tensor& op) {
  CUDABK_ASSIGN(const KeyedGraph keyed, translate_alone(op, scan_));
  CUDABK_ASSIGN(const Plan plan, make_plan(keyed.graph, info(), backend_options().plan));
  const auto is_gemm = [](const PlannedLaunch& l) { return std::holds_alternative<GemmWork>(l.launch.work); };
  if (std::any_of(plan.launches.begin(), plan.launches.end(), is_gemm)) {
    CUDABK_TRY(device_->gemm_available());
  }
  if (info().emulated) {  // knows only the variants that were listed for it; a GPU compiles any
    CUDABK_TRY(device_->prepare(plan.kernels()));
  }
  return true;
}

// Shape and type; whether it ends up in a weight buffer is not known before it is allocated.
bool PluginDevice::may_pack(const Tensor& leaf) const {
  const bool wanted = settings_.layout == LayoutWish::kAuto ? profile_.layout_of(dtype_name(leaf.type)) == "frag"
                                                            : settings_.layout == LayoutWish::kFrag;
  return wanted && frag_can_hold(leaf, info());
}

int64_t PluginDevice::allocation_bytes(const ggml_tensor& t) const {
  const Result<Tensor> leaf = leaf_of(t, Usage::kWeights);
  if (!leaf.ok()) {  // of a type that is not known here: the tensor is stored, and no op takes it
    int64_t bytes = t.ne[0] * static_cast<int64_t>(t.nb[0]);  // more than a row takes, where it has blocks
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
      bytes += (t.ne[i] - 1) * static_cast<int64_t>(t.nb[i]);
    }
    return std::max<int64_t>(bytes, 0);
  }
  const int64_t raw = cudabk::allocation_bytes(*leaf);
  if (t.op != GGML_OP_NONE || t.view_src != nullptr || !may_pack(*leaf)) {
    return raw;
  }
  return std::max(raw, frag_tensor_bytes(*leaf));
}

RootTraits PluginDevice::traits_of(const ggml_tensor& root) const {
  RootTraits traits;
  traits.foreign = !is_buffer_of(root.buffer, *this);
  if (root.op == GGML_OP_NONE && root.buffer != nullptr) {
    traits.weights = root.buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS || settings_.every_leaf_is_weight;
    const PackedWeights* weights = packed_weights(root);
    traits.packed = weights != nullptr && weights->packed;
  }
  return traits;
}

Status PluginDevice::pack(const ggml_tensor& root) {
  PackedWeights* weights = packed_weights(root);
  if (weights == nullptr) {
    return unfit("its buffer was not allocated for the packed layout");
  }
  CUDABK_TRY(repacker_->pack_in_place(weights->root, weights->memory));
  weights->packed = true;
  return success();
}

Status PluginDevice::unpack(const ggml_tensor& root) {
  PackedWeights* weights = packed_weights(root);
  if (weights == nullptr || !weights->packed) {
    return success();
  }
  CUDABK_TRY(repacker_->unpack_in_place(weights->root, weights->memory));
  weights->packed = false;
  return success();
}

Status PluginDevice::read_packed(const PackedWeights& weights, std::span<std::byte> bytes, int64_t offset) {
  return repacker_->download(weights.root, weights.memory, bytes, offset);
}

Status PluginDevice::copy(DevicePtr dst, DevicePtr src, int64_t bytes) {
  if (copies_ == nullptr) {
    CUDABK_ASSIGN(copies_, device_->create_stream());
  }
  CUDABK_TRY(device_->synchronize());
  CUDABK_TRY(copies_->copy(dst, src, bytes));
  return copies_->synchronize();
}

}  // namespace cudabk::plugin
