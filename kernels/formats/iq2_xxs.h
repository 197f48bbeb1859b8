// iq2_xxs: 256 elements in 66 bytes: f16 d, then per group of 32 elements four bytes, entries of a table of octets, and
// a word of four 7-bit sign fields and a 4-bit scale.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq2_xxs) struct Format<T> {
  static constexpr int kBytes = 66, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr uint32_t kLevels = level_word(iq2_levels(), 0);
  static constexpr Selectors8<256> kGrid = selectors8(iq2xxs_grid());
  // Part g: group g.
  struct Slice {
    uint32_t entries;
    uint32_t signs;  // and the scale
    float d;
  };

  static Slice load(const uint8_t* block, int part) {
    const uint8_t* record = block + 2 + 8 * part;
    return {load_word_2aligned(record), load_word_2aligned(record + 4), to_float(load_half(block))};
  }
  static int run_offset(int part, int /*run*/) { return part * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    Codes<32> c;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      put_octet(c.words + 2 * k, look_up_octet(kLevels, kGrid.entries[(s.entries >> (8 * k)) & 255]),
                sign_byte(s.signs >> (7 * k)));
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) {
    return {s.d * static_cast<float>(2 * (s.signs >> 28) + 1) * 0.125f, 0.0f};
  }
};

}  // namespace cudabk
