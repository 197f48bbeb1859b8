// One device of the registry: the device of the project behind it, its profile, and what ggml's structs need.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backend/backend.h"
#include "backend/repack.h"
#include "ggml_headers.h"
#include "graph_scan.h"
#include "settings.h"

namespace cudabk::plugin {

// A leaf that may be packed where it is a weight. Owned by its buffer as long as that lives; ggml_tensor::extra of all
// tensors over this memory points to it.
struct PackedWeights {
  Tensor root;  // a leaf in the packed layout
  DevicePtr memory = nullptr;
  bool packed = false;
};

class PluginDevice {
 public:
  // Opens "cuda:0", "host" ... and finds its profile. `settings` outlives the device.
  static Result<std::unique_ptr<PluginDevice>> open(const std::string& device_name, int index,
                                                    const Settings& settings);
  PluginDevice(const PluginDevice&) = delete;

  // ggml calls from any thread, a Device is used by one at a time: every call holds this.
  std::mutex& mutex() { return mutex_; }

  Device& device() { return *device_; }
  const DeviceInfo& info() const { return device_->info(); }
  const Settings& settings() const { return settings_; }
  const Profile& profile() const { return profile_; }
  const std::string& name() const { return name_; }            // "CUDABK0"
  const std::string& host_name() const { return host_name_; }  // of its pinned buffers
  BackendOptions backend_options() const;

  // Under mutex():

  // Can this node run here? Asked of the builders, the ops and the planner; remembered by key.
  bool supports(const ggml_tensor& op);
  // Bytes that a tensor takes in a device buffer.
  int64_t allocation_bytes(const ggml_tensor& t) const;
  // What graph scans ask of root tensors in buffers of this device.
  RootTraits traits_of(const ggml_tensor& root) const;
  // May a leaf of this shape and type be packed, once it is a weight?
  bool may_pack(const Tensor& leaf) const;
  // Blocks. The tensor's memory is in this layout afterwards. kUnfit when there is no memory for the other form: the
  // tensor stays as it was.
  Status pack(const ggml_tensor& root);
  Status unpack(const ggml_tensor& root);
  // Copies from packed memory, in the raw layout.
  Status read_packed(const PackedWeights& weights, std::span<std::byte> bytes, int64_t offset);
  // Blocks until both copies are done.
  Status copy(DevicePtr dst, DevicePtr src, int64_t bytes);

  // Buffers, backends and events that ggml holds; the device must live while there are any.
  std::atomic<int64_t> live_objects{0};

  ggml_backend_device ggml_device{};
  ggml_backend_buffer_type buffer_type{}, host_buffer_type{};

 private:
  PluginDevice(const Settings& settings, int index);
  Result<bool> find_support(const ggml_tensor& op);

  const Settings& settings_;
  std::string name_, host_name_;
  std::unique_ptr<Device> device_;
  Profile profile_;
  std::unique_ptr<Repacker> repacker_;
  std::unique_ptr<Stream> copies_;
  std::mutex mutex_;
  GraphScan scan_;
  std::unordered_map<uint64_t, bool> supported_;
};

// Of a tensor in a device buffer of this library; nullptr for one that is never packed.
PackedWeights* packed_weights(const ggml_tensor& root);
// Is `buffer` device memory of this library? Of this device?
bool is_device_buffer(const ggml_backend_buffer* buffer);
bool is_buffer_of(const ggml_backend_buffer* buffer, const PluginDevice& device);

inline PluginDevice& device_of(ggml_backend_dev_t dev) { return *static_cast<PluginDevice*>(dev->context); }
inline PluginDevice& device_of(ggml_backend_buffer_type_t type) { return *static_cast<PluginDevice*>(type->context); }

// One line on stderr: "cudabk: ...". Under a host without a console it is lost; nothing depends on it.
void log_line(const std::string& text);

// Fills in the vtables (device.cpp, buffers.cpp, backend.cpp).
void set_up_device(PluginDevice& device, ggml_backend_reg_t registry);
void set_up_buffer_types(PluginDevice& device);
// nullptr, with a line logged, when it cannot be made.
ggml_backend_t make_backend(PluginDevice& device);
// Bytes from the first to the last one of the tensor; -1 for a type that is not known here.
int64_t strided_bytes(const ggml_tensor& t);
// Packed or not, the tensor's memory is raw and ready for writes afterwards. Under the device's mutex.
Status make_raw(PluginDevice& device, const ggml_tensor& t);

}  // namespace cudabk::plugin
