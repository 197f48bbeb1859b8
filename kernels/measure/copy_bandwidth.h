// Copies memory as fast as it goes: the roof for kernels that read and write alike.
#pragma once

#include "measure/args.h"
#include "platform/platform.h"

namespace cudabk {

// A tile is Threads * Unroll 16-byte words; blocks walk tiles with the stride of the grid.
template <int Threads, int Unroll>
KERNEL(copy_bandwidth, Threads)(CopyBandwidthArgs a) {
  const u32x4* src = reinterpret_cast<const u32x4*>(a.src);
  u32x4* dst = reinterpret_cast<u32x4*>(a.dst);
  for (int64_t tile = block_x(); tile < a.tiles; tile += grid_x()) {
    const int64_t first = tile * (Threads * Unroll) + thread_x();
    u32x4 loaded[Unroll];
    for (int i = 0; i < Unroll; ++i) {
      loaded[i] = load_streaming(src + first + i * Threads);
    }
    for (int i = 0; i < Unroll; ++i) {
      store_streaming(dst + first + i * Threads, loaded[i]);
    }
  }
}

}  // namespace cudabk
