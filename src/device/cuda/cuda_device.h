// NVIDIA GPUs as devices. Only cudart is linked; every other library is opened at first use.
#pragma once

#include <memory>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// The GPU `index` as "cuda:index". kUnfit, with the reason, where it cannot be used.
Result<std::unique_ptr<Device>> open_cuda_device(int index, const DeviceOptions& options);

// How many GPUs there are (at least 1), or kUnfit with the reason why there is none: no driver, too old a driver, no
// device.
Result<int> count_cuda_devices();

}  // namespace cudabk
