// Memory of the emulated device.
#pragma once

#include <cstdint>
#include <map>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// Buffers in host memory, 256-byte aligned, filled with 0xff. Under AddressSanitizer everything outside them is
// poisoned, so that an access beyond a buffer is caught even when it would hit the next one.
class HostMemory {
 public:
  explicit HostMemory(int64_t total_bytes) : total_bytes_(total_bytes) {}
  HostMemory(const HostMemory&) = delete;
  ~HostMemory();

  // kInvalid for a negative size; kUnfit with what was asked and what is free.
  Result<DevicePtr> allocate(int64_t bytes);
  void release(DevicePtr ptr);
  // kInvalid unless [ptr, ptr + bytes) lies in one buffer; `what` begins the message. An empty range is always legal.
  Status check_range(std::string_view what, const std::byte* ptr, int64_t bytes) const;

  int64_t free_bytes() const { return total_bytes_ - used_bytes_; }
  int64_t total_bytes() const { return total_bytes_; }

 private:
  struct Buffer {
    void* block;  // what was allocated, gaps included
    int64_t block_bytes;
    int64_t bytes;
  };
  static void free_buffer(const Buffer& buffer);

  int64_t total_bytes_;
  int64_t used_bytes_ = 0;
  std::map<const std::byte*, Buffer> buffers_;
};

}  // namespace cudabk
