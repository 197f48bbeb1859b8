// The architectures the emulated device can pose as.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace cudabk {

struct HostArch {
  std::string_view arch;  // "sm_80"
  int cc;                 // 80
  int sm_count;
  int64_t l2_bytes;
  int max_shared_bytes;  // per block, opt-in
};

constexpr std::string_view kDefaultHostArch = "sm_80";

// kInvalid with the list of known architectures.
Result<HostArch> find_host_arch(std::string_view arch);

}  // namespace cudabk
