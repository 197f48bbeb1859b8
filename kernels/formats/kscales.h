// The header of q4_K and q5_K blocks.
#pragma once

#include "formats/format.h"

namespace cudabk {

// header: f16 d, f16 dmin, 12 bytes of eight 6-bit scales and mins. {d * scale, -dmin * min} of a group of 32.
inline f32x2 scale_min(u32x4 header, int group) {
  // Groups 0..3 have their six bits in one byte; 4..7 four bits in the last word, two on top of an earlier byte.
  const int shift = 8 * (group % 4);
  const bool packed = group >= 4;
  const uint32_t low_mask = packed ? 0x0f : 0x3f, high_mask = packed ? 0x30 : 0;
  const uint32_t a = header.y >> shift, b = header.z >> shift, c = header.w >> shift;
  const uint32_t scale = ((packed ? c : a) & low_mask) | ((a >> 2) & high_mask);
  const uint32_t min = ((packed ? c >> 4 : b) & low_mask) | ((b >> 2) & high_mask);
  return {low_f16(header.x) * static_cast<float>(scale), -high_f16(header.x) * static_cast<float>(min)};
}

}  // namespace cudabk
