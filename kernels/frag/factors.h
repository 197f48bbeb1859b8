// The power of two per row that brings its values, as products by warp groups compute them, into f16's range.
#pragma once

#include "formats/frag.h"
#include "frag/tile_args.h"

namespace cudabk {

constexpr float kLargestValue = 16384;  // what values are brought below

// Largest |code - zero|.
constexpr float frag_largest_code(FragShape s) {
  if (s.codes != FragCodes::kLinear) {
    return 128;
  }
  const float top = static_cast<float>((1 << (s.low_bits + s.high_bits)) - 1) - s.zero;
  return top > s.zero ? top : s.zero;
}

// Bound on the magnitudes of group G of a tile of row h's values, and on what a product makes of its scales.
template <FragShape S, int G>
float group_bound(u32x2 entries, const FragRowScale& row) {
  constexpr float kOdd = frag_factor(S, 0, 0) / frag_factor(S, 1, 0);
  const f32x2 s = group_scale<S, 0, G>(entries, row);
  const float scale = S.group == 16 && G % 2 == 1 ? s.x / kOdd : s.x;
  return abs_f(scale) * frag_largest_code(S) + abs_f(s.y) * 1024;
}

template <DType T>
void strip_factors(const uint8_t* weights, float* factors, int units) {
  constexpr FragShape S = frag_shape(T);
  const int row = lane() % kFragRows, h = row / 8;
  const uint8_t* strip = weights;
  float bound = 0;
  for (int unit = warp(); unit < units; unit += kFactorWarps) {
    const uint8_t* p = strip + static_cast<int64_t>(unit) * S.unit_bytes();
    const uint32_t words = load_row_words<S, FragMemory::kWritten>(p, row);
    const FragRowScale scale = row_scale<S, 0>(words);
    if constexpr (S.row_bytes() != 0) {  // d and dmin times 1024 are halves too
      bound = max_f(bound, max_f(abs_f(low_f16(words)), S.row_bytes() == 4 ? abs_f(high_f16(words)) : 0.0f) * 256);
    }
    for (int tile = lane() / kFragRows; tile < 4; tile += 2) {
      const u32x2 entries = load_group_words<S, FragMemory::kWritten>(p, tile, row);
      bound = max_f(bound, group_bound<S, 0>(entries, scale));
      bound = max_f(bound, group_bound<S, 1>(entries, scale));
      if constexpr (S.group == 16) {
        bound = max_f(bound, group_bound<S, 2>(entries, scale));
        bound = max_f(bound, group_bound<S, 3>(entries, scale));
      }
    }
  }
  bound = max_f(bound, shuffle_xor(bound, kFragRows)) * (h == 0 ? frag_factor(S, 0, 0) : frag_factor(S, 0, 1));
  float* partial = shared_memory<float>();  // [warp][16]
  if (lane() < kFragRows) {
    partial[warp() * kFragRows + row] = bound;
  }
  block_sync();
  if (thread_x() < kFragRows) {
    for (int w = 1; w < kFactorWarps; ++w) {
      bound = max_f(bound, partial[w * kFragRows + row]);
    }
    // 2^e with bound * 2^e in [8192, 16384); 1 for nothing and for what is not finite.
    const int exponent = static_cast<int>(float_bits(bound) >> 23);
    const int wanted = 127 + 13 + 127 - exponent;
    const bool plain = exponent == 0 || exponent == 255;
    factors[row] = plain ? 1.0f : bits_to_float(static_cast<uint32_t>(wanted > 253 ? 253 : wanted) << 23);
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
