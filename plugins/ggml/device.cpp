// The device's vtable.
#include <fmt/format.h>

#include "plugin_device.h"

namespace cudabk::plugin {
namespace {

void get_memory(ggml_backend_dev_t dev, size_t* free, size_t* total) {
  PluginDevice& device = device_of(dev);
  const std::lock_guard lock(device.mutex());
  const auto figures = device.device().memory_free_total();
  *free = figures.ok() ? static_cast<size_t>(figures->first) : 0;
  *total = figures.ok() ? static_cast<size_t>(figures->second) : 0;
}

void get_props(ggml_backend_dev_t dev, ggml_backend_dev_props* props) {
  PluginDevice& device = device_of(dev);
  props->name = device.name().c_str();
  props->description = device.info().name.c_str();
  get_memory(dev, &props->memory_free, &props->memory_total);
  props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
  props->device_id = nullptr;
  props->caps.async = true;
  props->caps.host_buffer = device.settings().pinned;
  props->caps.buffer_from_host_ptr = false;
  props->caps.events = true;
}

bool supports_op(ggml_backend_dev_t dev, const ggml_tensor* op) {
  PluginDevice& device = device_of(dev);
  const std::lock_guard lock(device.mutex());
  return device.supports(*op);
}

// Rows of activations that share the weights: few are not worth bringing the weights here.
int64_t batch_of(const ggml_tensor& op) {
  switch (op.op) {
    case GGML_OP_GET_ROWS:
      return 0;
    case GGML_OP_MUL_MAT:
      return op.ne[1];
    default:
      return op.ne[1] * op.ne[2] * op.ne[3];
  }
}

ggml_backend_event_t event_new(ggml_backend_dev_t dev) {
  PluginDevice& device = device_of(dev);
  const std::lock_guard lock(device.mutex());
  auto event = device.device().create_event();
  if (!event.ok()) {
    log_line(event.error().message);
    return nullptr;
  }
  ++device.live_objects;
  return new ggml_backend_event{dev, std::move(event).value().release()};
}

void event_free(ggml_backend_dev_t dev, ggml_backend_event_t event) {
  PluginDevice& device = device_of(dev);
  const std::lock_guard lock(device.mutex());
  delete static_cast<Event*>(event->context);
  delete event;
  --device.live_objects;
}

void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t event) {
  if (const Status done = static_cast<const Event*>(event->context)->synchronize(); !done.ok()) {
    log_line("event: " + done.error().message);
  }
}

const ggml_backend_device_i kDevice = {
    .get_name = [](ggml_backend_dev_t dev) { return device_of(dev).name().c_str(); },
    .get_description = [](ggml_backend_dev_t dev) { return device_of(dev).info().name.c_str(); },
    .get_memory = get_memory,
    .get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; },
    .get_props = get_props,
    .init_backend = [](ggml_backend_dev_t dev, const char*) { return make_backend(device_of(dev)); },
    .get_buffer_type = [](ggml_backend_dev_t dev) { return &device_of(dev).buffer_type; },
    .get_host_buffer_type = [](ggml_backend_dev_t dev) { return &device_of(dev).host_buffer_type; },
    .supports_op = supports_op,
    .supports_buft = [](ggml_backend_dev_t dev,
                        ggml_backend_buffer_type_t type) { return type == &device_of(dev).buffer_type; },
    .offload_op = [](ggml_backend_dev_t dev,
                     const ggml_tensor* op) { return batch_of(*op) >= device_of(dev).settings().offload_min_batch; },
    .event_new = event_new,
    .event_free = event_free,
    .event_synchronize = event_synchronize,
};

}  // namespace

void set_up_device(PluginDevice& device, ggml_backend_reg_t registry) {
  device.ggml_device = {.iface = kDevice, .reg = registry, .context = &device};
  set_up_buffer_types(device);
}

}  // namespace cudabk::plugin
