// q4_1: 32 elements in 20 bytes: f16 d, f16 m, 16 bytes whose low nibbles are elements 0..15 and high nibbles 16..31.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <DType T>
requires(T == DType::q4_1) struct Format<T> {
  static constexpr int kBytes = 20, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = false, kHasOffset = true;
  struct Slice {
    uint32_t header;  // d, then m
    uint32_t nibbles[4];
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    const auto* words = reinterpret_cast<const uint32_t*>(block);
    Slice s;
    s.header = load_readonly(words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.nibbles[i] = load_readonly(words + 1 + i);
    }
    return s;
  }
  static int run_offset(int /*part*/, int /*run*/) { return 0; }
  static ChunkPlace place(int chunk) { return {0, chunk}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c.words[i] = s.nibbles[i] & 0x0f0f0f0f;
      c.words[4 + i] = (s.nibbles[i] >> 4) & 0x0f0f0f0f;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {low_f16(s.header), high_f16(s.header)}; }
};

}  // namespace cudabk
