// q4_K: 256 elements in 144 bytes: f16 d, f16 dmin, 12 bytes of eight 6-bit scales and mins, 128 bytes of nibbles.
// A run of 32 nibble bytes holds group 2j in its low and group 2j + 1 in its high nibbles.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q4_K> {
  static constexpr int kBytes = 144, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(DType::q4_K);
  static constexpr bool kSigned = false, kHasOffset = true;
  // Part j: nibble bytes 32j .. 32j + 31, groups 2j and 2j + 1.
  struct Slice {
    u32x4 header;  // d and dmin, then the 12 scale bytes
    u32x4 nibbles[2];
  };

  static Slice load(const uint8_t* block, int part) {
    const auto* words = reinterpret_cast<const u32x4*>(block);
    const u32x4* nibbles = words + 1 + 2 * part;
    return {load_readonly(words), {load_streaming(nibbles), load_streaming(nibbles + 1)}};
  }
  static int run_offset(int part, int run) { return part * 64 + run * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 4, chunk % 4}; }
  // High nibbles stay where they are, 16 times too large; scale() makes up for it.
  static Codes<32> codes(const Slice& s, int run) {
    const uint32_t mask = 0x0f0f0f0fu << (4 * run);
    const u32x4 a = s.nibbles[0], b = s.nibbles[1];
    return {{a.x & mask, a.y & mask, a.z & mask, a.w & mask, b.x & mask, b.y & mask, b.z & mask, b.w & mask}};
  }
  static f32x2 scale(const Slice& s, int part, int run) {
    // Groups 0..3 have their six bits in one byte; 4..7 four bits in the last word, two on top of an earlier byte.
    const int shift = 16 * (part & 1) + 8 * run;
    const bool packed = part >= 2;
    const uint32_t low_mask = packed ? 0x0f : 0x3f, high_mask = packed ? 0x30 : 0;
    const uint32_t a = s.header.y >> shift, b = s.header.z >> shift, c = s.header.w >> shift;
    const uint32_t scale = ((packed ? c : a) & low_mask) | ((a >> 2) & high_mask);
    const uint32_t min = ((packed ? c >> 4 : b) & low_mask) | ((b >> 2) & high_mask);
    const float d = to_float(f16{static_cast<uint16_t>(s.header.x & 0xffff)}) * (run == 1 ? 0.0625f : 1.0f);
    const float dmin = to_float(f16{static_cast<uint16_t>(s.header.x >> 16)});
    return {d * static_cast<float>(scale), -dmin * static_cast<float>(min)};
  }
};

}  // namespace cudabk
