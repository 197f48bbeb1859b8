// mxfp4: 32 elements in 17 bytes: an exponent byte e, 16 bytes whose low nibbles are elements 0..15 and high nibbles
// 16..31. Codes are twice the e2m1 value, the scale is 2^(e - 128).
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::mxfp4) struct Format<T> {
  static constexpr int kBytes = 17, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  struct Slice {
    uint32_t nibbles[4];
    uint32_t exponent;
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    Slice s;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.nibbles[i] = load_word_unaligned(block + 1 + 4 * i);
    }
    s.exponent = load_readonly(block);
    return s;
  }
  static int run_offset(int /*part*/, int /*run*/) { return 0; }
  static ChunkPlace place(int chunk) { return {0, chunk}; }
  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32x2 values = look_up_bytes(fp4_levels(), s.nibbles[i]);
      c.words[i] = values.x;
      c.words[4 + i] = values.y;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) {
    const uint32_t subnormal = 0x00200000u << (s.exponent & 1);  // 2^-128 and 2^-127 lie below the normal numbers
    return {bits_to_float(s.exponent < 2 ? subnormal : (s.exponent - 1) << 23), 0.0f};
  }
};

}  // namespace cudabk
