// The emulated GPU as a Device. Everything runs before the call that asks for it returns.
#pragma once

#include <memory>
#include <string_view>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

constexpr int kMaxHostDevices = 64;

// Device `index` of a machine whose GPUs are all of `arch`. kInvalid for an unknown architecture, kUnfit for an index
// beyond kMaxHostDevices.
Result<std::unique_ptr<Device>> open_host_device(int index, std::string_view arch, const DeviceOptions& options);

}  // namespace cudabk
