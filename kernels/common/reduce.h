// Sums over a warp and over a block; every thread gets the result, in a fixed order of additions.
#pragma once

#include "platform/platform.h"

namespace cudabk {

inline float warp_sum(float v) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    v += shuffle_xor(v, mask);
  }
  return v;
}

// `partial`: shared memory for one float per warp, free again only after the next barrier.
template <int Threads>
inline float block_sum(float v, float* partial) {
  static_assert(Threads % kWarpSize == 0 && Threads <= kWarpSize * kWarpSize);
  constexpr int kWarps = Threads / kWarpSize;
  v = warp_sum(v);
  if (lane() == 0) {
    partial[warp()] = v;
  }
  block_sync();
  return warp_sum(lane() < kWarps ? partial[lane()] : 0.0f);
}

}  // namespace cudabk
