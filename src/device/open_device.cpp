#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/units.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "device/host/host_arch.h"
#include "device/host/host_device.h"

namespace cudabk {

namespace {

constexpr int kMaxIndex = 1023;

Error malformed(std::string_view name) {
  return invalid(fmt::format("'{}' is no device; devices are auto, cuda:N, host[:N][@sm_XX]", name));
}

// The number after "cuda:" or "host:"; 0 for the bare word.
Result<int> parse_index(std::string_view name, std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  if (text.front() != ':') {
    return malformed(name);
  }
  const auto index = parse_int(text.substr(1));
  if (!index.ok() || *index < 0 || *index > kMaxIndex) {
    return malformed(name);
  }
  return static_cast<int>(*index);
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") {
    const auto count = cuda_device_count();
    return count.ok() && *count > 0 ? open_cuda_device(0, options) : open_host_device(0, kDefaultHostArch, options);
  }
  if (name.starts_with("cuda")) {
    CUDABK_ASSIGN(const int index, parse_index(name, name.substr(4)));
    return open_cuda_device(index, options);
  }
  if (name.starts_with("host")) {
    const size_t at = std::min(name.find('@'), name.size());
    CUDABK_ASSIGN(const int index, parse_index(name, name.substr(4, at - 4)));
    const std::string_view arch = at < name.size() ? name.substr(at + 1) : kDefaultHostArch;
    return open_host_device(index, arch, options);
  }
  return malformed(name);
}

Result<DeviceInfo> describe_architecture(std::string_view arch) {
  CUDABK_ASSIGN(const HostArch known, find_host_arch(arch));
  DeviceInfo info;
  info.name = std::string(known.arch);
  info.arch = std::string(known.arch);
  info.cc = known.cc;
  info.sm_count = known.sm_count;
  info.l2_bytes = known.l2_bytes;
  info.max_shared_bytes = known.max_shared_bytes;
  return info;
}

Result<int> cuda_device_count() { return count_cuda_devices(); }

}  // namespace cudabk
