// q2_K: 256 elements in 84 bytes: 16 bytes of 4-bit scales (low) and mins (high), 64 bytes of bit pairs, f16 d, f16
// dmin. In each half of 128 elements, column c of 32 has bits 2c of the half's 32 bytes; a scale covers 16 elements.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <DType T>
requires(T == DType::q2_K) struct Format<T> {
  static constexpr int kBytes = 84, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = false, kHasOffset = true;
  // Part 2h + p: bytes 16p .. 16p + 15 of half h, with the four columns as runs.
  struct Slice {
    uint32_t pairs[4];
    uint32_t scales[2];  // of the half: run r has byte 2r + p
    uint32_t d;          // d, then dmin
  };

  static Slice load(const uint8_t* block, int part) {
    const auto* words = reinterpret_cast<const uint32_t*>(block);
    Slice s;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.pairs[i] = load_readonly(words + 4 + 4 * part + i);
    }
    s.scales[0] = load_readonly(words + part / 2 * 2);
    s.scales[1] = load_readonly(words + part / 2 * 2 + 1);
    s.d = load_readonly(words + 20);
    return s;
  }
  static int run_offset(int part, int run) { return part / 2 * 128 + run * 32 + part % 2 * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 8 * 2 + chunk % 2, chunk / 2 % 4}; }
  // Pairs stay where they are, 4^run times too large; scale() makes up for it.
  static Codes<16> codes(const Slice& s, int run) {
    const uint32_t mask = 0x03030303u << (2 * run);
    return {{s.pairs[0] & mask, s.pairs[1] & mask, s.pairs[2] & mask, s.pairs[3] & mask}};
  }
  static f32x2 scale(const Slice& s, int part, int run) {
    const uint32_t byte = (run < 2 ? s.scales[0] : s.scales[1]) >> (8 * (run % 2 * 2 + part % 2));
    const float d = low_f16(s.d) * bits_to_float(static_cast<uint32_t>(127 - 2 * run) << 23);
    return {d * static_cast<float>(byte & 15), -high_f16(s.d) * static_cast<float>((byte >> 4) & 15)};
  }
};

}  // namespace cudabk
