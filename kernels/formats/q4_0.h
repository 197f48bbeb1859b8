// q4_0: 32 elements in 18 bytes: f16 d, 16 bytes whose low nibbles are elements 0..15 and high nibbles 16..31.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q4_0> {
  static constexpr int kBytes = 18, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(DType::q4_0);
  static constexpr bool kSigned = false, kHasOffset = true;
  struct Slice {
    uint32_t nibbles[4];
    float d;
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    Slice s;
    for (int i = 0; i < 4; ++i) {
      s.nibbles[i] = load_word_2aligned(block + 2 + 4 * i);
    }
    s.d = to_float(load_half(block));
    return s;
  }
  static int run_offset(int /*part*/, int /*run*/) { return 0; }
  static ChunkPlace place(int chunk) { return {0, chunk}; }
  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
    for (int i = 0; i < 4; ++i) {
      c.words[i] = s.nibbles[i] & 0x0f0f0f0f;
      c.words[4 + i] = (s.nibbles[i] >> 4) & 0x0f0f0f0f;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {s.d, -8.0f * s.d}; }
};

}  // namespace cudabk
