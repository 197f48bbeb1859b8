// iq4_nl: 32 elements in 18 bytes: f16 d, 16 bytes whose low nibbles are elements 0..15 and high nibbles 16..31,
// numbers of levels of a table.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq4_nl) struct Format<T> {
  static constexpr int kBytes = 18, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  struct Slice {
    uint32_t nibbles[4];
    float d;
  };

  static Slice load(const uint8_t* block, int /*part*/) {
    Slice s;
#pragma unroll
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
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32x2 values = look_up_bytes(iq4nl_levels(), s.nibbles[i]);
      c.words[i] = values.x;
      c.words[4 + i] = values.y;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {s.d, 0.0f}; }
};

}  // namespace cudabk
