// Buffer types and buffers: device memory, in which weights may be packed, and pinned host memory.
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <vector>

#include "backend/buffers.h"
#include "plugin_device.h"
#include "translate.h"

namespace cudabk::plugin {
namespace {

constexpr size_t kDeviceAlignment = 256;  // what Device::allocate gives

struct DeviceBuffer {
  PluginDevice& device;
  Memory memory;
  std::map<DevicePtr, std::unique_ptr<PackedWeights>> weights;  // by address
  std::vector<std::unique_ptr<PackedWeights>> replaced;         // tensors may still point to them
};

struct HostBuffer {
  PluginDevice& device;
  PinnedMemory memory;
};

DeviceBuffer& device_buffer(ggml_backend_buffer_t buffer) { return *static_cast<DeviceBuffer*>(buffer->context); }

DevicePtr address(const ggml_tensor& t) { return static_cast<DevicePtr>(t.data); }

// Vtable functions that return nothing can only say it.
void report(std::string_view what, const Status& status) {
  if (!status.ok()) {
    log_line(fmt::format("{}: {}", what, status.error().message));
  }
}

// ---- device buffers ----

void free_device_buffer(ggml_backend_buffer_t buffer) {
  DeviceBuffer* own = &device_buffer(buffer);
  PluginDevice& device = own->device;
  const std::lock_guard lock(device.mutex());
  report("free", device.device().synchronize());
  delete own;
  --device.live_objects;
}

void* base_of(ggml_backend_buffer_t buffer) { return device_buffer(buffer).memory.ptr(); }

// What is known of weights in this memory goes, but for a second tensor over the same ones.
PackedWeights* forget_overlapping(DeviceBuffer& own, const ggml_tensor& t, const Tensor& leaf) {
  PackedWeights* same = nullptr;
  const DevicePtr begin = address(t), end = begin + own.device.allocation_bytes(t);
  for (auto it = own.weights.begin(); it != own.weights.end();) {
    PackedWeights& known = *it->second;
    const bool overlaps = it->first < end && begin < it->first + allocation_bytes(known.root);
    if (!overlaps) {
      ++it;
    } else if (known.memory == begin && same_layout(known.root, leaf)) {
      same = &known;
      ++it;
    } else {
      known.packed = false;
      own.replaced.push_back(std::move(it->second));
      it = own.weights.erase(it);
    }
  }
  return same;
}

ggml_status init_tensor(ggml_backend_buffer_t buffer, ggml_tensor* t) {
  if (t->view_src != nullptr) {
    return GGML_STATUS_SUCCESS;
  }
  DeviceBuffer& own = device_buffer(buffer);
  const std::lock_guard lock(own.device.mutex());
  t->extra = nullptr;
  const Result<Tensor> leaf = leaf_of(*t, Usage::kWeights);
  if (!leaf.ok()) {
    return GGML_STATUS_SUCCESS;
  }
  PackedWeights* known = forget_overlapping(own, *t, *leaf);
  const bool for_results = buffer->usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE;  // placed anew for every graph
  if (known == nullptr && t->op == GGML_OP_NONE && !for_results && own.device.may_pack(*leaf)) {
    auto& slot = own.weights[address(*t)];
    slot = std::make_unique<PackedWeights>(PackedWeights{*leaf, address(*t)});
    slot->root.name = t->name;
    slot->root.layout = WeightLayout::kFrag;
    known = slot.get();
  }
  t->extra = known;
  const int64_t bytes = byte_size(*leaf), tail = allocation_bytes(*leaf) - bytes;
  if (tail > 0 && (known == nullptr || !known->packed) && !for_results) {
    const Status filled = own.device.device().fill(address(*t) + bytes, 0, tail);
    report("init", filled);
    return filled.ok() ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
  }
  return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* t, const void* data, size_t offset, size_t size) {
  PluginDevice& device = device_buffer(buffer).device;
  const std::lock_guard lock(device.mutex());
  Status done = make_raw(device, *t);
  if (done.ok()) {
    done = device.device().upload(address(*t) + offset, data, static_cast<int64_t>(size));
  }
  report(t->name, done);
}

void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* t, void* data, size_t offset, size_t size) {
  PluginDevice& device = device_buffer(buffer).device;
  const std::lock_guard lock(device.mutex());
  const PackedWeights* weights = packed_weights(root_of(*t));
  if (weights != nullptr && weights->packed) {
    const int64_t begin = address(*t) - weights->memory + static_cast<int64_t>(offset);
    report(t->name, device.read_packed(*weights, {static_cast<std::byte*>(data), size}, begin));
    return;
  }
  report(t->name, device.device().download(data, address(*t) + offset, static_cast<int64_t>(size)));
}

void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor* t, uint8_t value, size_t offset, size_t size) {
  PluginDevice& device = device_buffer(buffer).device;
  const std::lock_guard lock(device.mutex());
  Status done = make_raw(device, *t);
  if (done.ok()) {
    done = device.device().fill(address(*t) + offset, value, static_cast<int64_t>(size));
  }
  report(t->name, done);
}

// False where the host has to copy through its own memory.
bool cpy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* src, ggml_tensor* dst) {
  PluginDevice& device = device_buffer(buffer).device;
  const int64_t bytes = strided_bytes(*src);
  if (bytes < 0 || !is_buffer_of(root_of(*src).buffer, device)) {
    return false;
  }
  const std::lock_guard lock(device.mutex());
  const PackedWeights* weights = packed_weights(root_of(*src));
  if (weights != nullptr && weights->packed) {
    return false;
  }
  Status done = make_raw(device, *dst);
  if (done.ok()) {
    done = device.copy(address(*dst), address(*src), bytes);
  }
  report(dst->name, done);
  return done.ok();
}

void clear(ggml_backend_buffer_t buffer, uint8_t value) {
  DeviceBuffer& own = device_buffer(buffer);
  const std::lock_guard lock(own.device.mutex());
  for (auto& [at, weights] : own.weights) {
    weights->packed = false;
  }
  report("clear", own.device.device().fill(own.memory.ptr(), value, own.memory.bytes()));
}

const ggml_backend_buffer_i kDeviceBuffer = {
    .free_buffer = free_device_buffer,
    .get_base = base_of,
    .init_tensor = init_tensor,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .cpy_tensor = cpy_tensor,
    .clear = clear,
};

ggml_backend_buffer_t allocate_device_buffer(ggml_backend_buffer_type_t type, size_t size) {
  PluginDevice& device = device_of(type);
  const std::lock_guard lock(device.mutex());
  auto memory = device.device().allocate(static_cast<int64_t>(size));
  if (!memory.ok()) {
    log_line(memory.error().message);
    return nullptr;
  }
  ++device.live_objects;
  auto* own = new DeviceBuffer{device, std::move(memory).value(), {}, {}};
  return new ggml_backend_buffer{kDeviceBuffer, type, own, size, GGML_BACKEND_BUFFER_USAGE_ANY};
}

// ---- pinned host buffers ----

std::byte* host_address(const ggml_tensor& t) { return static_cast<std::byte*>(t.data); }

const ggml_backend_buffer_i kHostBuffer = {
    .free_buffer =
        [](ggml_backend_buffer_t buffer) {
          auto* own = static_cast<HostBuffer*>(buffer->context);
          PluginDevice& device = own->device;
          const std::lock_guard lock(device.mutex());
          delete own;
          --device.live_objects;
        },
    .get_base = [](ggml_backend_buffer_t buffer) -> void* {
      return static_cast<HostBuffer*>(buffer->context)->memory.get();
    },
    .memset_tensor = [](ggml_backend_buffer_t, ggml_tensor* t, uint8_t value, size_t offset,
                        size_t size) { std::memset(host_address(*t) + offset, value, size); },
    .set_tensor = [](ggml_backend_buffer_t, ggml_tensor* t, const void* data, size_t offset,
                     size_t size) { std::memcpy(host_address(*t) + offset, data, size); },
    .get_tensor = [](ggml_backend_buffer_t, const ggml_tensor* t, void* data, size_t offset,
                     size_t size) { std::memcpy(data, host_address(*t) + offset, size); },
    .clear =
        [](ggml_backend_buffer_t buffer, uint8_t value) {
          std::memset(static_cast<HostBuffer*>(buffer->context)->memory.get(), value, buffer->size);
        },
};

PinnedMemory plain_memory(size_t size) {
  constexpr std::align_val_t kAlignment{kDeviceAlignment};
  return {static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow)),
          [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

ggml_backend_buffer_t allocate_host_buffer(ggml_backend_buffer_type_t type, size_t size) {
  PluginDevice& device = device_of(type);
  const std::lock_guard lock(device.mutex());
  PinnedMemory memory;
  if (device.settings().pinned) {
    if (auto pinned = device.device().allocate_pinned(static_cast<int64_t>(size)); pinned.ok()) {
      memory = std::move(pinned).value();
    }
  }
  if (memory == nullptr) {
    memory = plain_memory(size);
  }
  if (memory == nullptr) {
    return nullptr;
  }
  ++device.live_objects;
  auto* own = new HostBuffer{device, std::move(memory)};
  return new ggml_backend_buffer{kHostBuffer, type, own, size, GGML_BACKEND_BUFFER_USAGE_ANY};
}

size_t alignment(ggml_backend_buffer_type_t) { return kDeviceAlignment; }

}  // namespace

int64_t strided_bytes(const ggml_tensor& t) {
  const Result<DType> type = dtype_of(t.type);
  if (!type.ok()) {
    return -1;
  }
  Tensor own;
  own.type = *type;
  for (int i = 0; i < GGML_MAX_DIMS; ++i) {
    own.ne[i] = t.ne[i];
    own.nb[i] = static_cast<int64_t>(t.nb[i]);
  }
  return byte_size(own);
}

PackedWeights* packed_weights(const ggml_tensor& root) {
  return is_device_buffer(root.buffer) ? static_cast<PackedWeights*>(root.extra) : nullptr;
}

bool is_device_buffer(const ggml_backend_buffer* buffer) {
  return buffer != nullptr && buffer->iface.free_buffer == free_device_buffer;
}

bool is_buffer_of(const ggml_backend_buffer* buffer, const PluginDevice& device) {
  return is_device_buffer(buffer) && buffer->buft == &device.buffer_type;
}

Status make_raw(PluginDevice& device, const ggml_tensor& t) { return device.unpack(root_of(t)); }

void set_up_buffer_types(PluginDevice& device) {
  device.buffer_type = {
      .iface = {
          .get_name = [](ggml_backend_buffer_type_t type) { return device_of(type).name().c_str(); },
          .alloc_buffer = allocate_device_buffer,
          .get_alignment = alignment,
          .get_alloc_size =
              [](ggml_backend_buffer_type_t type, const ggml_tensor* t) {
                return static_cast<size_t>(device_of(type).allocation_bytes(*t));
              },
      },
      .device = &device.ggml_device,
      .context = &device,
  };
  device.host_buffer_type = {
      .iface = {
          .get_name = [](ggml_backend_buffer_type_t type) { return device_of(type).host_name().c_str(); },
          .alloc_buffer = allocate_host_buffer,
          .get_alignment = alignment,
          .is_host = [](ggml_backend_buffer_type_t) { return true; },
      },
      .device = &device.ggml_device,
      .context = &device,
  };
}

}  // namespace cudabk::plugin
