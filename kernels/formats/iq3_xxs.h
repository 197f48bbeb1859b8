// iq3_xxs: 256 elements in 98 bytes: f16 d, 64 bytes of entries of a table of quads, then per group of 32 elements a
// word of four 7-bit sign fields (an octet each) and a 4-bit scale.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq3_xxs) struct Format<T> {
  static constexpr int kBytes = 98, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr uint32_t kLow = level_word(iq3xxs_levels(), 0), kHigh = level_word(iq3xxs_levels(), 4);
  static constexpr Selectors4<256> kGrid = selectors4(iq3xxs_grid());
  // Part g: group g.
  struct Slice {
    uint32_t entries[2];
    uint32_t signs;  // and the scale
    float d;
  };

  static Slice load(const uint8_t* block, int part) {
    const uint8_t* entries = block + 2 + 8 * part;
    return {{load_word_2aligned(entries), load_word_2aligned(entries + 4)},
            load_word_2aligned(block + 66 + 4 * part),
            to_float(load_half(block))};
  }
  static int run_offset(int part, int /*run*/) { return part * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static uint32_t quad(uint32_t entry) { return byte_perm(kLow, kHigh, kGrid.entries[entry & 255]); }
  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t entries = s.entries[k / 2] >> (16 * (k % 2));
      put_octet(c.words + 2 * k, {quad(entries), quad(entries >> 8)}, sign_byte(s.signs >> (7 * k)));
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) {
    return {s.d * static_cast<float>(2 * (s.signs >> 28) + 1) * 0.25f, 0.0f};
  }
};

}  // namespace cudabk
