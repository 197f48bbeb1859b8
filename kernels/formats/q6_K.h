// q6_K: 256 elements in 210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, f16 d.
// In each half of 128 elements, column c of 32 has its low bits in nibble byte 32 (c % 2) + l (high nibble for c >= 2)
// and its high bits in bits 2c of byte l.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q6_K> {
  static constexpr int kBytes = 210, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(DType::q6_K);
  static constexpr bool kSigned = false, kHasOffset = true;
  // Part 4h + 2q + p: half h, bytes 16p .. 16p + 15 of columns q and q + 2, which share their nibble bytes.
  struct Slice {
    uint32_t low[4];
    uint32_t high[4];  // already shifted: bits 0-1 are column q's, bits 4-5 column q + 2's
    float scale[2];
  };

  static Slice load(const uint8_t* block, int part) {
    const int half = part / 4, column = part / 2 % 2, bytes = part % 2 * 16;
    Slice s;
    for (int i = 0; i < 4; ++i) {
      s.low[i] = load_word_2aligned(block + 64 * half + 32 * column + bytes + 4 * i);
      s.high[i] = load_word_2aligned(block + 128 + 32 * half + bytes + 4 * i) >> (2 * column);
    }
    const float d = to_float(load_half(block + 208));
    const auto* scales = reinterpret_cast<const int8_t*>(block + 192 + 8 * half + 2 * column + part % 2);
    s.scale[0] = d * static_cast<float>(load_readonly(scales));
    s.scale[1] = d * static_cast<float>(load_readonly(scales + 4));
    return s;
  }
  static int run_offset(int part, int run) { return part / 4 * 128 + (part / 2 % 2 + 2 * run) * 32 + part % 2 * 16; }
  static ChunkPlace place(int chunk) {
    const int half = chunk / 8, column = chunk / 2 % 4;
    return {4 * half + 2 * (column % 2) + chunk % 2, column / 2};
  }
  static uint32_t word(const Slice& s, int run, int i) {
    const uint32_t low = (s.low[i] >> (4 * run)) & 0x0f0f0f0f;
    const uint32_t high = run == 0 ? (s.high[i] << 4) & 0x30303030 : s.high[i] & 0x30303030;
    return low | high;
  }
  static Codes<16> codes(const Slice& s, int run) {
    return {{word(s, run, 0), word(s, run, 1), word(s, run, 2), word(s, run, 3)}};
  }
  static f32x2 scale(const Slice& s, int /*part*/, int run) {
    const float d = run == 0 ? s.scale[0] : s.scale[1];  // an index would put the slice into local memory
    return {d, -32.0f * d};
  }
};

}  // namespace cudabk
