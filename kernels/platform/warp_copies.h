// WarpCopies (platform.h) where there are no bulk copies, and in the emulator: pieces of 16 bytes by all lanes, slots
// in the order in which they are closed.
#pragma once

#include "platform/platform.h"

namespace cudabk {

template <int Stages>
class WarpCopies {
 public:
  explicit WarpCopies(void*) {}

  bool asks() const { return true; }
  void expect(int, int) {}
  void copy(int, void* shared, const void* global, int bytes) {
    for (int at = lane() * 16; at < bytes; at += kWarpSize * 16) {
      async_copy_16(static_cast<uint8_t*>(shared) + at, static_cast<const uint8_t*>(global) + at);
    }
  }
  void close() { async_commit(); }
  void wait(int, int) {
    async_wait<Stages - 1>();
    warp_sync();
  }
};

}  // namespace cudabk
