// The power of two per row that brings its scales, as products by warp groups multiply them, below 2^15.
#pragma once

#include "common/f16_range.h"
#include "formats/frag.h"
#include "frag/tile_args.h"

namespace cudabk {

// Bounds on what scales and minima of products become (tile_values.h) over the row's factor. Min: the part that
// differs between rows g and g + 8, by their factors.
struct RowBound {
  float scale, min;

  void take(float s, float m) {
    scale = max_f(scale, abs_f(s));
    min = max_f(min, abs_f(m));
  }
};

template <FragShape S, int G>
void bound_group(RowBound& bound, u32x2 entries, const FragRowScale& row) {
  constexpr float kOdd = frag_factor(S, 0, 0) / frag_factor(S, 1, 0);
  const f32x2 s = group_scale<S, 0, G>(entries, row);
  bound.take(S.group == 16 && G % 2 == 1 ? s.x / kOdd : s.x, s.y * (1024 * kSubnormalUnit));
}

template <DType T>
void strip_factors(const uint8_t* weights, float* factors, int units) {
  constexpr FragShape S = frag_shape(T);
  const int row = lane() % kFragRows, h = row / 8;
  RowBound bound{0, 0};
  for (int unit = warp(); unit < units; unit += kFactorWarps) {
    const uint8_t* p = weights + static_cast<int64_t>(unit) * S.unit_bytes();
    const uint32_t words = load_row_words<S, FragMemory::kWritten>(p, row);
    const FragRowScale scale = row_scale<S, 0>(words);
    if constexpr (S.row_bytes() != 0) {  // d and dmin become halves themselves
      bound.take(low_f16(words), S.row_bytes() == 4 ? high_f16(words) / frag_row_factor(S, 0) : 0.0f);
    }
    for (int tile = lane() / kFragRows; tile < 4; tile += 2) {
      const u32x2 entries = load_group_words<S, FragMemory::kWritten>(p, tile, row);
      bound_group<S, 0>(bound, entries, scale);
      bound_group<S, 1>(bound, entries, scale);
      if constexpr (S.group == 16) {
        bound_group<S, 2>(bound, entries, scale);
        bound_group<S, 3>(bound, entries, scale);
      }
    }
  }
  float largest = max_f(bound.scale, bound.min * (h == 0 ? frag_factor(S, 0, 0) : frag_factor(S, 0, 1)));
  largest = max_f(largest, shuffle_xor(largest, kFragRows));
  float* partial = shared_memory<float>();  // [warp][16]
  if (lane() < kFragRows) {
    partial[warp() * kFragRows + row] = largest;
  }
  block_sync();
  if (thread_x() < kFragRows) {
    for (int w = 1; w < kFactorWarps; ++w) {
      largest = max_f(largest, partial[w * kFragRows + row]);
    }
    constexpr bool kHalves = S.scale == FragScale::kHalf || S.scale == FragScale::kHalfMin;
    const float factor = f16_factor(largest);
    factors[row] = kHalves ? min_f(factor, kLargestHalvesFactor) : factor;
  }
  block_sync();  // the shared memory is used again
}

// A block per strip, looped. Row r of the strip belongs to lanes r and r + 16 of every warp; warps take every 8-th
// unit. Shared memory: a float per warp and row.
template <DType T>
KERNEL(frag_factors, kFactorWarps* kWarpSize)(FragFactorsArgs a) {
  wait_for_previous_kernel();
  for (int64_t strip = block_x(); strip < a.strips; strip += grid_x()) {
    strip_factors<T>(a.weights + strip * a.units * frag_shape(T).unit_bytes(), a.factors + strip * kFragRows, a.units);
  }
}

}  // namespace cudabk
