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

// A power of two s with largest * s in [2^14, 2^15), at most 2^126. largest: not negative.
inline float f16_factor(float largest) {
  const int wanted = 127 + 14 + 127 - static_cast<int>(float_bits(largest) >> 23);
  return bits_to_float(static_cast<uint32_t>(wanted > 253 ? 253 : wanted) << 23);
}
// 1 / factor, exactly.
inline float f16_inverse(float factor) { return bits_to_float((254u << 23) - float_bits(factor)); }

}  // namespace cudabk
