// A ggml backend: a stream of its own with the graphs that it has run.
#include <fmt/format.h>

#include <chrono>

#include "backend/layouts.h"
#include "explain.h"
#include "plugin_device.h"
#include "translate.h"

namespace cudabk::plugin {
namespace {

ggml_guid guid = {0x63, 0x75, 0x64, 0x61, 0x62, 0x6b, 0x9d, 0x41, 0xb8, 0x2f, 0x07, 0xe6, 0x5a, 0x13, 0xc4, 0x90};

struct PluginBackend {
  PluginDevice& device;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<GraphCache> cache;
  std::unique_ptr<Event> copied;  // at the first copy to another backend
  GraphScan scan;
  HostTimes times;
};

PluginBackend& plugin_backend(ggml_backend_t backend) { return *static_cast<PluginBackend*>(backend->context); }

bool is_own(ggml_backend_t backend) { return backend != nullptr && backend->guid == &guid; }

DevicePtr address(const ggml_tensor& t) { return static_cast<DevicePtr>(t.data); }

bool is_packed(const ggml_tensor& t) {
  const PackedWeights* weights = packed_weights(root_of(t));
  return weights != nullptr && weights->packed;
}

void report(std::string_view what, const Status& status) {
  if (!status.ok()) {
    log_line(fmt::format("{}: {}", what, status.error().message));
  }
}

// ---- graphs ----

void scan_graph(PluginBackend& own, std::span<ggml_tensor* const> nodes, const ggml_cgraph& graph) {
  own.scan.scan(nodes, &graph, [&](const ggml_tensor& root) { return own.device.traits_of(root); });
}

// Nodes without work may name tensors that are elsewhere.
Status check_memory(const PluginBackend& own, const KeyedGraph& keyed) {
  for (const auto& [tensor, index] : keyed.roots) {
    if (own.scan.root_traits()[index].foreign) {
      return invalid(fmt::format("{} is not in a buffer of {}", own.scan.roots()[index]->name, own.device.name()));
    }
  }
  return success();
}

// Gives every weight tensor the layout that this graph wants and its memory allows. True: some memory changed.
Result<bool> settle_layouts(PluginBackend& own, KeyedGraph& keyed) {
  for (const auto& [id, index] : keyed.roots) {
    Tensor& leaf = *keyed.graph.tensors()[id];
    leaf.layout_wish = own.scan.root_traits()[index].packed ? LayoutWish::kFrag : own.device.settings().layout;
  }
  choose_layouts(keyed.graph, own.device.info(), own.device.backend_options().plan);
  bool changed = false;
  for (const auto& [id, index] : keyed.roots) {
    Tensor& leaf = *keyed.graph.tensors()[id];
    const ggml_tensor& root = *own.scan.roots()[index];
    const bool packed = own.scan.root_traits()[index].packed, wanted = leaf.layout == WeightLayout::kFrag;
    if (leaf.op != kOpNone || packed == wanted) {
      continue;
    }
    Status done = wanted ? own.device.pack(root) : own.device.unpack(root);
    if (!done.ok() && wanted && done.error().kind == ErrorKind::kUnfit) {
      leaf.layout = WeightLayout::kRaw;
      continue;
    }
    CUDABK_TRY(std::move(done));
    changed = true;
  }
  return changed;
}

Status run_new(PluginBackend& own, std::span<ggml_tensor* const> nodes, const ggml_cgraph& graph) {
  CUDABK_ASSIGN(KeyedGraph keyed, translate(nodes, own.scan));
  CUDABK_TRY(check_memory(own, keyed));
  CUDABK_ASSIGN(const bool repacked, settle_layouts(own, keyed));
  if (repacked) {
    scan_graph(own, nodes, graph);
    CUDABK_ASSIGN(const bool known, own.cache->run(own.scan.key(), own.scan.addresses()));
    if (known) {
      return success();
    }
  }
  CUDABK_ASSIGN(const Execution* execution, own.cache->add(own.scan.key(), std::move(keyed), own.scan.addresses()));
  if (own.device.settings().explain) {
    explain_plan(own.device, execution->plan(), own.cache->newest());
  }
  return success();
}

double ns_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

Status compute(PluginBackend& own, const ggml_cgraph& graph) {
  const auto start = std::chrono::steady_clock::now();
  const std::span<ggml_tensor* const> nodes(graph.nodes, static_cast<size_t>(graph.n_nodes));
  scan_graph(own, nodes, graph);
  if (!own.scan.has_work()) {
    return success();
  }
  own.times.scan_ns += ns_since(start);
  own.times.nodes += graph.n_nodes;
  ++own.times.graphs;
  const int64_t hits = own.cache->counters().hits;
  CUDABK_ASSIGN(const bool known, own.cache->run(own.scan.key(), own.scan.addresses()));
  if (own.cache->counters().hits > hits) {
    own.times.known_ns += ns_since(start);
    own.times.known_nodes += graph.n_nodes;
  }
  return known ? success() : run_new(own, nodes, graph);
}

ggml_status graph_compute(ggml_backend_t backend, ggml_cgraph* graph) {
  PluginBackend& own = plugin_backend(backend);
  const std::lock_guard lock(own.device.mutex());
  const Status done = compute(own, *graph);
  if (done.ok()) {
    return GGML_STATUS_SUCCESS;
  }
  report("graph", done);
  return done.error().kind == ErrorKind::kUnfit ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
}

// ---- copies and order ----

void set_tensor_async(ggml_backend_t backend, ggml_tensor* t, const void* data, size_t offset, size_t size) {
  PluginBackend& own = plugin_backend(backend);
  const std::lock_guard lock(own.device.mutex());
  Status done = make_raw(own.device, *t);
  if (done.ok()) {
    done = own.backend->stream().upload(address(*t) + offset, data, static_cast<int64_t>(size));
  }
  report(t->name, done);
}

void get_tensor_async(ggml_backend_t backend, const ggml_tensor* t, void* data, size_t offset, size_t size) {
  PluginBackend& own = plugin_backend(backend);
  const std::lock_guard lock(own.device.mutex());
  const PackedWeights* weights = packed_weights(root_of(*t));
  if (weights != nullptr && weights->packed) {
    const int64_t begin = address(*t) - weights->memory + static_cast<int64_t>(offset);
    report(t->name, own.device.read_packed(*weights, {static_cast<std::byte*>(data), size}, begin));
    return;
  }
  report(t->name, own.backend->stream().download(data, address(*t) + offset, static_cast<int64_t>(size)));
}

Status copy_between(PluginBackend& from, PluginBackend& to, const ggml_tensor& src, ggml_tensor& dst) {
  CUDABK_TRY(make_raw(to.device, dst));
  CUDABK_TRY(from.backend->stream().copy(address(dst), address(src), strided_bytes(src)));
  if (&from == &to) {
    return success();
  }
  if (from.copied == nullptr) {
    CUDABK_ASSIGN(from.copied, from.device.device().create_event());
  }
  CUDABK_TRY(from.backend->stream().record(*from.copied));
  return to.backend->stream().wait(*from.copied);
}

bool cpy_tensor_async(ggml_backend_t from, ggml_backend_t to, const ggml_tensor* src, ggml_tensor* dst) {
  if (!is_own(from) || !is_own(to) || from->device != to->device) {
    return false;
  }
  PluginDevice& device = plugin_backend(to).device;
  if (!is_buffer_of(root_of(*src).buffer, device) || !is_buffer_of(root_of(*dst).buffer, device)) {
    return false;
  }
  const std::lock_guard lock(device.mutex());
  if (is_packed(*src) || strided_bytes(*src) < 0) {
    return false;
  }
  const Status done = copy_between(plugin_backend(from), plugin_backend(to), *src, *dst);
  report(dst->name, done);
  return done.ok();
}

void event_record(ggml_backend_t backend, ggml_backend_event_t event) {
  PluginBackend& own = plugin_backend(backend);
  const std::lock_guard lock(own.device.mutex());
  report("event", own.backend->stream().record(*static_cast<Event*>(event->context)));
}

void event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
  PluginBackend& own = plugin_backend(backend);
  const std::lock_guard lock(own.device.mutex());
  report("event", own.backend->stream().wait(*static_cast<const Event*>(event->context)));
}

void free_backend(ggml_backend_t backend) {
  PluginBackend* own = &plugin_backend(backend);
  PluginDevice& device = own->device;
  const std::lock_guard lock(device.mutex());
  report("free", own->backend->synchronize());
  if (device.settings().explain) {
    explain_times(device, own->times, own->cache->counters());
  }
  delete own;
  delete backend;
  --device.live_objects;
}

const ggml_backend_i kBackend = {
    .get_name = [](ggml_backend_t backend) { return plugin_backend(backend).device.name().c_str(); },
    .free = free_backend,
    .set_tensor_async = set_tensor_async,
    .get_tensor_async = get_tensor_async,
    .cpy_tensor_async = cpy_tensor_async,
    .synchronize =
        [](ggml_backend_t backend) { report("synchronize", plugin_backend(backend).backend->synchronize()); },
    .graph_compute = graph_compute,
    .event_record = event_record,
    .event_wait = event_wait,
};

}  // namespace

ggml_backend_t make_backend(PluginDevice& device) {
  const std::lock_guard lock(device.mutex());
  auto backend = Backend::create(device.device(), device.backend_options());
  if (!backend.ok()) {
    log_line(fmt::format("{}: {}", device.name(), backend.error().message));
    return nullptr;
  }
  auto* own = new PluginBackend{device, std::move(backend).value()};
  own->cache = std::make_unique<GraphCache>(*own->backend);
  ++device.live_objects;
  return new ggml_backend{&guid, kBackend, &device.ggml_device, own};
}

}  // namespace cudabk::plugin
