// What the environment asks for. entry.cpp reads it, once; nothing else does.
#pragma once

#include <set>
#include <string>

#include "device/device.h"
#include "graph/tensor.h"

namespace cudabk::plugin {

struct Settings {
  std::string device;        // "" every GPU; else one device by its name: "cuda:1", "host", "host:0@sm_90a"
  std::string profile_file;  // "": found by device
  std::string profile_dir;   // of this user
  DeviceOptions device_options;
  bool fusion = true;
  std::set<std::string> disabled_rules;
  bool graphs = true;
  bool explain = false;
  LayoutWish layout = LayoutWish::kAuto;
  bool every_leaf_is_weight = false;  // constant leaves outside weight buffers are packed too
  bool pinned = true;
  int64_t offload_min_batch = 32;
};

}  // namespace cudabk::plugin
