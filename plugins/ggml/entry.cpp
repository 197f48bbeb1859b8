// What ggml looks for in the library, the registry, and the environment. Nothing else here reads the environment.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/fusion.h"
#include "plugin_device.h"

namespace cudabk::plugin {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string user_folder(const char* xdg, const char* below_home) {
  if (const std::string base = environment(xdg); !base.empty()) {
    return base + "/cudabk";
  }
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/" + below_home + "/cudabk";
}

bool is_off(const char* name) { return environment(name) == "0"; }
bool is_on(const char* name) { return !environment(name).empty() && !is_off(name); }

std::set<std::string> comma_list(const std::string& text) {
  std::set<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) {
      items.insert(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return items;
}

LayoutWish read_layout() {
  const std::string word = environment("CUDABK_LAYOUT");
  if (word == "raw" || word == "frag") {
    return word == "raw" ? LayoutWish::kRaw : LayoutWish::kFrag;
  }
  if (!word.empty() && word != "auto") {
    log_line(fmt::format("CUDABK_LAYOUT={}: only auto, raw and frag are known; auto is taken", word));
  }
  return LayoutWish::kAuto;
}

int64_t read_number(const char* name, int64_t fallback) {
  const std::string text = environment(name);
  int64_t value = fallback;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (code != std::errc() || end != text.data() + text.size())) {
    log_line(fmt::format("{}={}: not a whole number; {} is taken", name, text, fallback));
    return fallback;
  }
  return value;
}

Settings read_settings() {
  Settings s;
  s.device = environment("CUDABK_DEVICE");
  s.profile_file = environment("CUDABK_PROFILE");
  if (const std::string data = user_folder("XDG_DATA_HOME", ".local/share"); !data.empty()) {
    s.profile_dir = data + "/profiles";
  }
  s.device_options.cache_dir = user_folder("XDG_CACHE_HOME", ".cache");
  const std::string cuda_home = environment("CUDA_HOME");
  s.device_options.toolkit_dir = cuda_home.empty() ? environment("CUDA_PATH") : cuda_home;
  s.fusion = !is_off("CUDABK_FUSION");
  s.disabled_rules = comma_list(environment("CUDABK_NO_FUSE"));
  for (const std::string& rule : s.disabled_rules) {
    if (const Status known = check_fusion_name(rule); !known.ok()) {
      log_line("CUDABK_NO_FUSE: " + known.error().message);
    }
  }
  s.graphs = !is_off("CUDABK_GRAPHS");
  s.explain = is_on("CUDABK_EXPLAIN");
  s.layout = read_layout();
  s.every_leaf_is_weight = environment("CUDABK_WEIGHTS") == "all";
  s.pinned = !is_off("CUDABK_PINNED");
  s.offload_min_batch = read_number("GGML_OP_OFFLOAD_MIN_BATCH", s.offload_min_batch);
  return s;
}

struct Plugin {
  Settings settings = read_settings();
  std::vector<std::unique_ptr<PluginDevice>> devices;
  ggml_backend_reg registry{};
  std::vector<std::string> feature_texts;
  std::vector<ggml_backend_feature> features;  // ends with a null name
};

// Lives from ggml_backend_init to the end of the library. A host that still holds buffers or backends then, in other
// threads perhaps, keeps everything they need.
struct Owner {
  Plugin* plugin = nullptr;
  ~Owner() {
    for (size_t i = 0; plugin != nullptr && i < plugin->devices.size(); ++i) {
      if (plugin->devices[i]->live_objects != 0) {
        return;
      }
    }
    delete plugin;
  }
};
Owner owner;

void open_devices(Plugin& plugin) {
  std::vector<std::string> names;
  if (const std::string& asked = plugin.settings.device; !asked.empty() && asked != "auto") {
    names.push_back(asked);
  } else if (const Result<int> count = cuda_device_count(); count.ok()) {
    for (int i = 0; i < *count; ++i) {
      names.push_back(fmt::format("cuda:{}", i));
    }
  } else {
    log_line(fmt::format("no usable GPU: {}; CUDABK_DEVICE=host is the emulated device", count.error().message));
  }
  for (const std::string& name : names) {
    auto device = PluginDevice::open(name, static_cast<int>(plugin.devices.size()), plugin.settings);
    if (!device.ok()) {
      log_line(fmt::format("{} is left out: {}", name, device.error().message));
      continue;
    }
    set_up_device(**device, &plugin.registry);
    plugin.devices.push_back(std::move(device).value());
  }
}

void list_features(Plugin& plugin) {
  if (plugin.devices.empty()) {
    return;
  }
  const PluginDevice& first = *plugin.devices.front();
  plugin.feature_texts = {"ARCH", first.info().arch, "PROFILE", first.profile().source};
  for (size_t i = 0; i < plugin.feature_texts.size(); i += 2) {
    plugin.features.push_back({plugin.feature_texts[i].c_str(), plugin.feature_texts[i + 1].c_str()});
  }
  if (!plugin.settings.fusion) {
    plugin.features.push_back({"NO_FUSION", "1"});
  }
  if (plugin.settings.graphs) {
    plugin.features.push_back({"USE_GRAPHS", "1"});
  }
}

Plugin& plugin_of(ggml_backend_reg_t registry) { return *static_cast<Plugin*>(registry->context); }

ggml_backend_feature* get_features(ggml_backend_reg_t registry) { return plugin_of(registry).features.data(); }

void* get_proc_address(ggml_backend_reg_t, const char* name) {
  return std::strcmp(name, "ggml_backend_get_features") == 0 ? reinterpret_cast<void*>(get_features) : nullptr;
}

const ggml_backend_reg_i kRegistry = {
    .get_name = [](ggml_backend_reg_t) { return "CUDABK"; },
    .get_device_count = [](ggml_backend_reg_t registry) { return plugin_of(registry).devices.size(); },
    .get_device = [](ggml_backend_reg_t registry, size_t index) -> ggml_backend_dev_t {
      Plugin& plugin = plugin_of(registry);
      return index < plugin.devices.size() ? &plugin.devices[index]->ggml_device : nullptr;
    },
    .get_proc_address = get_proc_address,
};

Plugin* make_plugin() {
  auto* plugin = new Plugin();
  plugin->registry = {.api_version = GGML_BACKEND_API_VERSION, .iface = kRegistry, .context = plugin};
  open_devices(*plugin);
  list_features(*plugin);
  plugin->features.push_back({nullptr, nullptr});
  return plugin;
}

}  // namespace

void log_line(const std::string& text) { std::fprintf(stderr, "cudabk: %s\n", text.c_str()); }

}  // namespace cudabk::plugin

extern "C" {

// The registry; the same at every call.
__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
  using cudabk::plugin::owner;
  if (owner.plugin == nullptr) {
    owner.plugin = cudabk::plugin::make_plugin();
  }
  return &owner.plugin->registry;
}

// Above 0: usable. Variants of this library do not exist.
__attribute__((visibility("default"))) int ggml_backend_score() { return 1; }
}
