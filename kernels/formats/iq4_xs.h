// iq4_xs: 256 elements in 136 bytes: f16 d, 16 bits with the high bit pairs of eight 6-bit scales, 4 bytes with their
// low nibbles, then per group of 32 elements 16 bytes whose low nibbles are elements 0..15 and high nibbles 16..31,
// numbers of levels of a table.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq4_xs) struct Format<T> {
  static constexpr int kBytes = 136, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  // Part g: group g.
  struct Slice {
    u32x2 header;  // d and the high bits, then the low bits
    u32x2 nibbles[2];
  };

  static Slice load(const uint8_t* block, int part) {
    const auto* words = reinterpret_cast<const u32x2*>(block);
    return {load_readonly(words), {load_streaming(words + 1 + 2 * part), load_streaming(words + 2 + 2 * part)}};
  }
  static int run_offset(int part, int /*run*/) { return part * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    const uint32_t nibbles[4] = {s.nibbles[0].x, s.nibbles[0].y, s.nibbles[1].x, s.nibbles[1].y};
    Codes<32> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32x2 values = look_up_bytes(iq4nl_levels(), nibbles[i]);
      c.words[i] = values.x;
      c.words[4 + i] = values.y;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int part, int /*run*/) {
    const uint32_t low = (s.header.y >> (4 * part)) & 15, high = (s.header.x >> (16 + 2 * part)) & 3;
    return {low_f16(s.header.x) * static_cast<float>(static_cast<int>(low | high << 4) - 32), 0.0f};
  }
};

}  // namespace cudabk
