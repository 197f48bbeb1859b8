// Device scratch memory for plans: leases of arenas, reused best-fit. Memory goes back to the device only when the
// pool dies or runs short, and never while a lease is alive (executable graphs hold addresses).
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"

namespace cudabk {

class ScratchPool {
 public:
  explicit ScratchPool(Device& device) : device_(device) {}

  // Memory on loan; returns to the pool when it dies. The pool must outlive it.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), memory_(std::move(other.memory_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    Lease(const Lease&) = delete;
    ~Lease() {
      if (pool_ != nullptr) {
        pool_->put_back(std::move(memory_));
      }
    }
    DevicePtr ptr() const { return memory_.ptr(); }

   private:
    friend class ScratchPool;
    Lease(ScratchPool* pool, Memory memory) : pool_(pool), memory_(std::move(memory)) {}
    ScratchPool* pool_ = nullptr;
    Memory memory_;
  };

  // At least `bytes` (0 gives an empty lease). The smallest free block that fits and is at most twice as large;
  // else a new one. When the device is out of memory, free blocks are given back and the request is tried again.
  Result<Lease> lease(int64_t bytes);

  int64_t live_bytes() const { return live_bytes_; }      // on loan
  int64_t cached_bytes() const { return cached_bytes_; }  // free blocks held

 private:
  void put_back(Memory memory);

  Device& device_;
  std::vector<Memory> free_;
  int64_t live_bytes_ = 0;
  int64_t cached_bytes_ = 0;
};

}  // namespace cudabk
