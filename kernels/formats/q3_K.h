// q3_K: 256 elements in 110 bytes: 32 bytes whose bit g is the third bit of group g of 32, 64 bytes of bit pairs, 12
// bytes of sixteen 6-bit scales, f16 d. In each half of 128 elements, column c of 32 has bits 2c of the half's 32
// bytes; a scale covers 16 elements. Codes are the signed value code - 4.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <DType T>
requires(T == DType::q3_K) struct Format<T> {
  static constexpr int kBytes = 110, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  // Part 2h + p: bytes 16p .. 16p + 15 of half h, with the four columns as runs.
  struct Slice {
    uint32_t pairs[4];
    uint32_t third[4];   // bit r: column r of the half
    uint32_t scales[3];  // all of the block's; the 6-bit scale of run r of the half: number 8h + 2r + p
    float d;
  };

  static Slice load(const uint8_t* block, int part) {
    Slice s;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.pairs[i] = load_word_2aligned(block + 32 + 16 * part + 4 * i);
      s.third[i] = load_word_2aligned(block + 16 * (part % 2) + 4 * i) >> (part / 2 * 4);
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      s.scales[i] = load_word_2aligned(block + 96 + 4 * i);
    }
    s.d = to_float(load_half(block + 108));
    return s;
  }
  static int run_offset(int part, int run) { return part / 2 * 128 + run * 32 + part % 2 * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 8 * 2 + chunk % 2, chunk / 2 % 4}; }
  static Codes<16> codes(const Slice& s, int run) {
    Codes<16> c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // a clear third bit subtracts 4
      c.words[i] = ((s.pairs[i] >> (2 * run)) & 0x03030303) | ((~s.third[i] >> run) & 0x01010101) * 0xfc;
    }
    return c;
  }
  // Number t of the scales has its low bits in nibble t / 8 of byte t % 8, its high bits in bits 2 (t / 4) of byte
  // 8 + t % 4.
  static f32x2 scale(const Slice& s, int part, int run) {
    const int half = part / 2, byte = run % 2 * 2 + part % 2;
    const uint32_t low = (run < 2 ? s.scales[0] : s.scales[1]) >> (8 * byte + 4 * half);
    const uint32_t high = s.scales[2] >> (8 * byte + 2 * (2 * half + run / 2));
    const int scale = static_cast<int>((low & 15) | (high & 3) << 4) - 32;
    return {s.d * static_cast<float>(scale), 0.0f};
  }
};

}  // namespace cudabk
