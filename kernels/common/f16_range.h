// Floats under a power of two that brings them into the range of f16.
#pragma once

#include "platform/platform.h"

namespace cudabk {

// Floats of which `largest` is the largest |x| can be rounded to f16 as they are: none overflows, and what is lost of
// the smallest, 2^-25, is less than 2^-15 of the largest (limit: at most 65504). Zeros, infinities and NaN need no
// factor either.
inline bool fits_f16(float largest, float limit = 32768.0f) {
  return (largest >= 0.001953125f && largest <= limit) || largest == 0.0f || !is_finite(largest);
}

// The largest of a warp's floats, none of which is negative: they are in the order of their bits.
inline float warp_largest(float v) { return bits_to_float(warp_max(float_bits(v))); }

// A power of two s with largest * s in [2^14, 2^15); 1 for zero, denormals and what is not finite.
inline float f16_factor(float largest) {
  const uint32_t exponent = float_bits(largest) >> 23;
  if (exponent == 0 || exponent == 255) {
    return 1.0f;
  }
  const int wanted = 127 + 14 + 127 - static_cast<int>(exponent);
  return bits_to_float(static_cast<uint32_t>(wanted > 253 ? 253 : wanted) << 23);
}

}  // namespace cudabk
