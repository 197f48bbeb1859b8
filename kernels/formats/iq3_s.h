// iq3_s: 256 elements in 110 bytes: f16 d, 64 bytes of entries of a table of quads, 8 bytes with their ninth bits, 32
// sign bytes, 4 bytes of 4-bit scales, each of 32 elements.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq3_s) struct Format<T> {
  static constexpr int kBytes = 110, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr uint32_t kLow = level_word(iq3s_levels(), 0), kHigh = level_word(iq3s_levels(), 4);
  static constexpr Selectors4<512> kGrid = selectors4(iq3s_grid());
  // Part g: 32 elements from 32g on.
  struct Slice {
    uint32_t entries[2], signs;
    uint32_t tail;  // d, the ninth bits, the scales of groups 2 (g / 2) and 2 (g / 2) + 1
  };

  static Slice load(const uint8_t* block, int part) {
    const uint8_t* entries = block + 2 + 8 * part;
    return {{load_word_2aligned(entries), load_word_2aligned(entries + 4)},
            load_word_2aligned(block + 74 + 4 * part),
            load_half_below(block, load_readonly(block + 66 + part) | load_readonly(block + 106 + part / 2) << 8)};
  }
  static int run_offset(int part, int /*run*/) { return part * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  // Quad number `p` of the group.
  static uint32_t quad(const Slice& s, int p) {
    const uint32_t entry = ((s.entries[p / 4] >> (8 * (p % 4))) & 255) | ((s.tail >> (16 + p)) & 1) << 8;
    return byte_perm(kLow, kHigh, kGrid.entries[entry]);
  }
  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      put_octet(c.words + 2 * k, {quad(s, 2 * k), quad(s, 2 * k + 1)}, s.signs >> (8 * k));
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int part, int /*run*/) {
    return {low_f16(s.tail) * static_cast<float>(2 * ((s.tail >> (24 + part % 2 * 4)) & 15) + 1), 0.0f};
  }
};

}  // namespace cudabk
