// How a device is called in texts for people.
#pragma once

#include <string>
#include <string_view>

namespace cudabk {

// "NVIDIA H200 (sm_90a)"; a name that holds the architecture already stays alone: "emulated sm_80". `more` comes into
// the brackets too: "NVIDIA H200 (sm_90a, 132 SMs)".
inline std::string device_label(std::string_view name, std::string_view arch, std::string_view more = {}) {
  std::string inside(name.find(arch) == std::string_view::npos ? arch : std::string_view());
  inside += !inside.empty() && !more.empty() ? ", " : "";
  inside += more;
  return std::string(name) + (inside.empty() ? "" : " (" + inside + ")");
}

}  // namespace cudabk
