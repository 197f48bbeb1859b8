// Reads memory as fast as it comes: the roof for kernels bound by reading.
#pragma once

#include "measure/args.h"
#include "platform/platform.h"

namespace cudabk {

// A tile is Threads * Unroll 16-byte words; blocks walk tiles with the stride of the grid.
template <int Threads, int Unroll>
KERNEL(read_bandwidth, Threads)(ReadBandwidthArgs a) {
  const u32x4* data = reinterpret_cast<const u32x4*>(a.data);
  uint32_t fold = 0;
  for (int64_t tile = block_x(); tile < a.tiles; tile += grid_x()) {
    const u32x4* words = data + tile * (Threads * Unroll) + thread_x();
    u32x4 loaded[Unroll];
    for (int i = 0; i < Unroll; ++i) {
      loaded[i] = load_streaming(words + i * Threads);
    }
    for (int i = 0; i < Unroll; ++i) {
      fold ^= loaded[i].x ^ loaded[i].y ^ loaded[i].z ^ loaded[i].w;
    }
  }
  if (fold == a.unlikely) {  // keeps the loads alive; true once in 2^32 threads on random data
    a.sink[0] = fold;
  }
}

}  // namespace cudabk
