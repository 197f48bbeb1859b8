#include "device/host/host_memory.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "core/units.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace cudabk {

namespace {

constexpr int64_t kAlignment = 256;
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kGapBytes = 16384;  // before and after each buffer
#else
constexpr int64_t kGapBytes = 0;
#endif

}  // namespace

HostMemory::~HostMemory() {
  for (const auto& [ptr, buffer] : buffers_) {
    free_buffer(buffer);
  }
}

void HostMemory::free_buffer(const Buffer& buffer) {
  ASAN_UNPOISON_MEMORY_REGION(buffer.block, buffer.block_bytes);
  std::free(buffer.block);
}

Result<DevicePtr> HostMemory::allocate(int64_t bytes) {
  if (bytes < 0) {
    return invalid(fmt::format("cannot allocate {} bytes", bytes));
  }
  const auto short_of_memory = [&] {
    return unfit(fmt::format("out of memory on the emulated device: {} asked for, {} of {} free",
                             format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(free_bytes())),
                             format_bytes(static_cast<double>(total_bytes_))));
  };
  if (bytes > free_bytes()) {
    return short_of_memory();
  }
  const int64_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;  // at least one byte past the end
  const int64_t block_bytes = kGapBytes + rounded + kGapBytes;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(block_bytes)));
  if (block == nullptr) {
    return short_of_memory();
  }
  std::byte* ptr = block + kGapBytes;
  std::memset(ptr, 0xff, static_cast<size_t>(bytes));
  ASAN_POISON_MEMORY_REGION(block, kGapBytes);
  ASAN_POISON_MEMORY_REGION(ptr + bytes, static_cast<size_t>(rounded - bytes + kGapBytes));
  buffers_[ptr] = {block, block_bytes, bytes};
  used_bytes_ += bytes;
  return ptr;
}

void HostMemory::release(DevicePtr ptr) {
  const auto found = buffers_.find(ptr);
  if (found != buffers_.end()) {
    used_bytes_ -= found->second.bytes;
    free_buffer(found->second);
    buffers_.erase(found);
  }
}

Status HostMemory::check_range(std::string_view what, const std::byte* ptr, int64_t bytes) const {
  if (bytes == 0) {
    return success();
  }
  auto after = buffers_.upper_bound(ptr);
  if (bytes < 0 || after == buffers_.begin()) {
    return invalid(fmt::format("{} of {} bytes at {}: not in device memory", what, bytes, fmt::ptr(ptr)));
  }
  const auto& [start, buffer] = *--after;
  const int64_t offset = ptr - start;
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) {
    return invalid(
        fmt::format("{} of {} bytes at offset {} of a buffer of {} bytes", what, bytes, offset, buffer.bytes));
  }
  return success();
}

}  // namespace cudabk
