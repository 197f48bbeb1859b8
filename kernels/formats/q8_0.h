// q8_0: 32 elements in 34 bytes: f16 d, 32 signed bytes.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q8_0> {
  static constexpr int kBytes = 34, kBlock = 32;
  static constexpr SliceShape kShape = slice_shape(DType::q8_0);
  static constexpr bool kSigned = true, kHasOffset = false;
  struct Slice {
    uint32_t bytes[4];
    float d;
  };

  static Slice load(const uint8_t* block, int part) {
    Slice s;
    for (int i = 0; i < 4; ++i) {
      s.bytes[i] = load_word_2aligned(block + 2 + 16 * part + 4 * i);
    }
    s.d = to_float(load_half(block));
    return s;
  }
  static int run_offset(int part, int /*run*/) { return part * 16; }
  static ChunkPlace place(int chunk) { return {chunk, 0}; }
  static Codes<16> codes(const Slice& s, int /*run*/) { return {{s.bytes[0], s.bytes[1], s.bytes[2], s.bytes[3]}}; }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) { return {s.d, 0.0f}; }
};

}  // namespace cudabk
