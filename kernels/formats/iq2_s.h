// iq2_s: 256 elements in 82 bytes: f16 d, 32 bytes of table entries (an octet each), 32 sign bytes, 8 bytes with the
// high two bits of the entries, 8 bytes of 4-bit scales, each of 16 elements.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq2_s) struct Format<T> {
  static constexpr int kBytes = 82, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr uint32_t kLevels = level_word(iq2_levels(), 0);
  static constexpr Selectors8<1024> kGrid = selectors8(iq2s_grid());
  // Part g: 32 elements from 32g on, two scales.
  struct Slice {
    uint32_t entries, signs;
    uint32_t tail;  // d, the high bits, the scales
  };

  static Slice load(const uint8_t* block, int part) {
    return {load_word_2aligned(block + 2 + 4 * part), load_word_2aligned(block + 34 + 4 * part),
            load_half_below(block, load_readonly(block + 66 + part) | load_readonly(block + 74 + part) << 8)};
  }
  static int run_offset(int part, int run) { return part * 32 + run * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<16> codes(const Slice& s, int run) {
    Codes<16> c;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int octet = 2 * run + k;
      const uint32_t entry = ((s.entries >> (8 * octet)) & 255) | ((s.tail >> (16 + 2 * octet)) & 3) << 8;
      put_octet(c.words + 2 * k, look_up_octet(kLevels, kGrid.entries[entry]), s.signs >> (8 * octet));
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int run) {
    return {low_f16(s.tail) * static_cast<float>(2 * ((s.tail >> (24 + 4 * run)) & 15) + 1) * 0.125f, 0.0f};
  }
};

}  // namespace cudabk
