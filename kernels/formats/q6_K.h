// q6_K: 256 elements in 210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, f16 d.
// In each half of 128 elements, column c of 32 has its low bits in nibble byte 32 (c % 2) + l (high nibble for c >= 2)
// and its high bits in bits 2c of byte l.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q6_K> {
  static constexpr int kBytes = 210, kBlock = 256, kParts = 4, kRuns = 4;
  static constexpr bool kSigned = false, kHasOffset = true;
  // Part 2h + p: half h, bytes 16p .. 16p + 15 of its columns.
  struct Slice {
    uint32_t low[8];   // columns 0 and 2, then 1 and 3
    uint32_t high[4];
    float scale[4];    // by column
  };

  static Slice load(const uint8_t* block, int part) {
    const int half = part / 2, bytes = part % 2 * 16;
    Slice s;
    for (int i = 0; i < 4; ++i) {
      s.low[i] = load_word_2aligned(block + 64 * half + bytes + 4 * i);
      s.low[4 + i] = load_word_2aligned(block + 64 * half + 32 + bytes + 4 * i);
      s.high[i] = load_word_2aligned(block + 128 + 32 * half + bytes + 4 * i);
    }
    const float d = to_float(load_half(block + 208));
    const auto* scales = reinterpret_cast<const int8_t*>(block + 192 + 8 * half + part % 2);
    for (int c = 0; c < 4; ++c) {
      s.scale[c] = d * static_cast<float>(load_readonly(scales + 2 * c));
    }
    return s;
  }
  static int run_offset(int part, int run) { return part / 2 * 128 + run * 32 + part % 2 * 16; }
  static uint32_t word(const Slice& s, int run, int i) {
    const uint32_t low = (s.low[4 * (run % 2) + i] >> (4 * (run / 2))) & 0x0f0f0f0f;
    return low | (((s.high[i] >> (2 * run)) & 0x03030303) << 4);
  }
  static u32x4 codes(const Slice& s, int run) {
    return {word(s, run, 0), word(s, run, 1), word(s, run, 2), word(s, run, 3)};
  }
  static f32x2 scale(const Slice& s, int /*part*/, int run) { return {s.scale[run], -32.0f * s.scale[run]}; }
};

}  // namespace cudabk
