// q5_1: 32 elements in 24 bytes: f16 d, f16 m, a word whose bit i is the fifth bit of element i, 16 bytes whose low
// nibbles are elements 0..15 and high nibbles 16..31.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::q5_1) struct Format<T> {
  static constexpr int kBytes = 24, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = false, kHasOffset = true;
  struct Slice {
    u32x2 header;  // d and m, then the fifth bits
    u32x2 nibbles[2];
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    const auto* words = reinterpret_cast<const u32x2*>(block);
    return {load_readonly(words), {load_readonly(words + 1), load_readonly(words + 2)}};
  }
  static int run_offset(int /*part*/, int /*run*/) { return 0; }
  static ChunkPlace place(int chunk) { return {0, chunk}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    const uint32_t nibbles[4] = {s.nibbles[0].x, s.nibbles[0].y, s.nibbles[1].x, s.nibbles[1].y}, high = s.header.y;
    Codes<32> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c.words[i] = (nibbles[i] & 0x0f0f0f0f) | spread_bits(high >> (4 * i)) << 4;
      c.words[4 + i] = ((nibbles[i] >> 4) & 0x0f0f0f0f) | spread_bits(high >> (16 + 4 * i)) << 4;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {low_f16(s.header.x), high_f16(s.header.x)}; }
};

}  // namespace cudabk
