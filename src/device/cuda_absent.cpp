// Stands in for src/device/cuda in builds without the CUDA toolkit.
#include "device/cuda/cuda_device.h"

namespace cudabk {

namespace {
constexpr char kReason[] = "built without the CUDA toolkit: only the emulated device is available (--device host)";
}

Result<std::unique_ptr<Device>> open_cuda_device(int, const DeviceOptions&) { return unfit(kReason); }
Result<int> count_cuda_devices() { return unfit(kReason); }

}  // namespace cudabk
