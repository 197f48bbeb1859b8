// Arguments of the measuring kernels.
#pragma once

#include "platform/types.h"

namespace cudabk {

struct SpinArgs {
  int64_t duration_ns;  // of the device's global timer
  int64_t* result;      // [2]: SM cycles, ns, between the same two ticks of the global timer
};

struct ReadBandwidthArgs {
  const uint32_t* data;  // [tiles * Threads * Unroll * 4], 16-byte aligned
  uint32_t* sink;        // [1], written only when the fold of a thread's words equals `unlikely`
  int64_t tiles;
  uint32_t unlikely;
};

struct CopyBandwidthArgs {
  const uint32_t* src;  // [tiles * Threads * Unroll * 4], 16-byte aligned
  uint32_t* dst;        // the same; does not overlap src
  int64_t tiles;
};

}  // namespace cudabk
