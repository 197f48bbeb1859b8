// q5_K: 256 elements in 176 bytes: f16 d, f16 dmin, 12 bytes of eight 6-bit scales and mins, 32 bytes whose bit g is
// the fifth bit of group g, 128 bytes of nibbles. A run of 32 nibble bytes holds group 2j in its low and group 2j + 1
// in its high nibbles.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <DType T>
requires(T == DType::q5_K) struct Format<T> {
  static constexpr int kBytes = 176, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = false, kHasOffset = true;
  // Part 2j + h: nibble bytes 32j + 16h .. + 15, half h of the groups 2j and 2j + 1.
  struct Slice {
    u32x4 header;  // d and dmin, then the 12 scale bytes
    u32x4 nibbles;
    u32x4 high;  // the fifth bits of all groups
    int group;   // 2j
  };

  static Slice load(const uint8_t* block, int part) {
    const auto* words = reinterpret_cast<const u32x4*>(block);
    return {load_readonly(words), load_streaming(words + 3 + part), load_readonly(words + 1 + part % 2), part / 2 * 2};
  }
  static int run_offset(int part, int run) { return part / 2 * 64 + run * 32 + part % 2 * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 4 * 2 + chunk % 2, chunk / 2 % 2}; }
  static Codes<16> codes(const Slice& s, int run) {
    const uint32_t nibbles[4] = {s.nibbles.x, s.nibbles.y, s.nibbles.z, s.nibbles.w};
    const uint32_t high[4] = {s.high.x, s.high.y, s.high.z, s.high.w};
    Codes<16> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c.words[i] = ((nibbles[i] >> (4 * run)) & 0x0f0f0f0f) | ((high[i] >> (s.group + run)) & 0x01010101) << 4;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int part, int run) {
    // Groups 0..3 have their six bits in one byte; 4..7 four bits in the last word, two on top of an earlier byte.
    const int shift = 16 * (part / 2 & 1) + 8 * run;
    const bool last = part >= 4;
    const uint32_t low_mask = last ? 0x0f : 0x3f, high_mask = last ? 0x30 : 0;
    const uint32_t a = s.header.y >> shift, b = s.header.z >> shift, c = s.header.w >> shift;
    const uint32_t scale = ((last ? c : a) & low_mask) | ((a >> 2) & high_mask);
    const uint32_t min = ((last ? c >> 4 : b) & low_mask) | ((b >> 2) & high_mask);
    return {low_f16(s.header.x) * static_cast<float>(scale), -high_f16(s.header.x) * static_cast<float>(min)};
  }
};

}  // namespace cudabk
