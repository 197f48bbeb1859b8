// Weights between raw and packed memory: kernels at upload and download, timed.
#pragma once

#include <memory>
#include <span>

#include "device/device.h"
#include "graph/tensor.h"
#include "ops/launch.h"

namespace cudabk {

// What packing has cost so far. Not part of any measured op.
struct RepackStats {
  int tensors = 0;    // packings, repeated ones included
  int64_t bytes = 0;  // raw
  double ns = 0;      // of the packing kernels, from launch to end
};

// Copies between host bytes in the raw layout and a packed tensor on the device. Allocates the raw form on the device
// for the duration of a call.
class Repacker {
 public:
  explicit Repacker(Device& device) : device_(&device) {}

  // Bytes [offset, offset + bytes.size()) of the tensor; the others keep their values.
  Status upload(const Tensor& root, DevicePtr packed, std::span<const std::byte> bytes, int64_t offset);
  // Bytes [offset, offset + bytes.size()) of the tensor.
  Status download(const Tensor& root, DevicePtr packed, std::span<std::byte> bytes, int64_t offset = 0);
  // The memory of `root`, from raw to packed or back, where it is. Blocks. An error of kind kUnfit (no memory for the
  // other form) leaves it as it was.
  Status pack_in_place(const Tensor& root, DevicePtr memory);
  Status unpack_in_place(const Tensor& root, DevicePtr memory);
  const RepackStats& stats() const { return stats_; }

 private:
  Status unpack(const Tensor& root, DevicePtr packed, DevicePtr raw);
  Status pack(const Tensor& root, DevicePtr raw, DevicePtr packed);
  Status run(Launch launch);
  Status copy(DevicePtr dst, DevicePtr src, int64_t bytes);

  Device* device_;
  std::unique_ptr<Stream> stream_;  // at first use
  RepackStats stats_;
};

}  // namespace cudabk
