// The smallest kernel: scales a vector, through shared memory and one barrier.
#pragma once

#include "platform/platform.h"
#include "probe/args.h"

namespace cudabk {

// Blocks of Threads threads, one element each; Threads * 4 bytes of shared memory. Element i of a block goes through
// the place of element Threads - 1 - i, so that a block without a working barrier gives a wrong result.
template <int Threads>
KERNEL(probe, Threads)(ProbeArgs a) {
  float* exchanged = shared_memory<float>();
  const int i = block_x() * Threads + thread_x();
  exchanged[Threads - 1 - thread_x()] = i < a.count ? a.scale * a.x[i] : 0.0f;
  block_sync();
  const int j = block_x() * Threads + (Threads - 1 - thread_x());
  if (j < a.count) {
    a.y[j] = exchanged[thread_x()];
  }
}

}  // namespace cudabk
