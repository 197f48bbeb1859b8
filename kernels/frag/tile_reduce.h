// Adds the parts of k of products by warp groups.
#pragma once

#include "frag/tile_args.h"
#include "platform/platform.h"

namespace cudabk {

template <int Elements>
void load_elements(const float* p, float (&v)[Elements]) {
  if constexpr (Elements == 4) {
    const f32x4 x = load_fresh(reinterpret_cast<const f32x4*>(p));
    v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
  } else {
    v[0] = load_fresh(p);
  }
}

// In their order, all loads of an element under way at once. Elements: of a thread, 4 where m is a multiple of 4 and
// everything is 16-byte aligned, else 1. grid: x = ceil(total / Elements / kTileReduceThreads).
template <int Parts, int Elements>
KERNEL(add_tile_parts, kTileReduceThreads)(AddTilePartsArgs a) {
  allow_next_kernel();
  const int64_t i = (static_cast<int64_t>(block_x()) * kTileReduceThreads + thread_x()) * Elements;
  float addend[Elements] = {};
  wait_for_previous_kernel();
  if (i >= a.total) {
    return;
  }
  float part[Parts][Elements];
#pragma unroll
  for (int s = 0; s < Parts; ++s) {
    load_elements<Elements>(a.partial + s * a.total + i, part[s]);
  }
  if (a.epilogue.addend != nullptr) {
    const int64_t row = i % a.m, col = i / a.m % a.n, batch = i / a.m / a.n;
    load_elements<Elements>(a.epilogue.addend + row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride,
                            addend);
  }
#pragma unroll
  for (int e = 0; e < Elements; ++e) {
    float sum = part[0][e];
#pragma unroll
    for (int s = 1; s < Parts; ++s) {
      sum += part[s][e];
    }
    part[0][e] = sum + addend[e];
  }
  if constexpr (Elements == 4) {
    store_whole(reinterpret_cast<f32x4*>(a.dst + i), f32x4{part[0][0], part[0][1], part[0][2], part[0][3]});
  } else {
    a.dst[i] = part[0][0];
  }
}

}  // namespace cudabk
