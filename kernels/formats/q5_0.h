// q5_0: 32 elements in 22 bytes: f16 d, a word whose bit i is the fifth bit of element i, 16 bytes whose low nibbles
// are elements 0..15 and high nibbles 16..31. Codes are the signed value code - 16.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::q5_0) struct Format<T> {
  static constexpr int kBytes = 22, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  struct Slice {
    uint32_t high;
    uint32_t nibbles[4];
    float d;
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    Slice s;
    s.high = load_word_2aligned(block + 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.nibbles[i] = load_word_2aligned(block + 6 + 4 * i);
    }
    s.d = to_float(load_half(block));
    return s;
  }
  static int run_offset(int /*part*/, int /*run*/) { return 0; }
  static ChunkPlace place(int chunk) { return {0, chunk}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    const uint32_t clear = ~s.high;  // a clear fifth bit subtracts 16
    Codes<32> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c.words[i] = (s.nibbles[i] & 0x0f0f0f0f) | spread_bits(clear >> (4 * i)) * 0xf0;
      c.words[4 + i] = ((s.nibbles[i] >> 4) & 0x0f0f0f0f) | spread_bits(clear >> (16 + 4 * i)) * 0xf0;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {s.d, 0.0f}; }
};

}  // namespace cudabk
