// iq2_xs: 256 elements in 74 bytes: f16 d, 32 16-bit codes of an octet each (9 bits: entry of a table, 7 bits: signs),
// 8 bytes of 4-bit scales, each of 16 elements.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq2_xs) struct Format<T> {
  static constexpr int kBytes = 74, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr uint32_t kLevels = level_word(iq2_levels(), 0);
  static constexpr Selectors8<512> kGrid = selectors8(iq2xs_grid());
  // Part g: 32 elements from 32g on, two scales.
  struct Slice {
    uint32_t octets[2];  // two codes each
    uint32_t tail;       // d, then the scales
  };

  static Slice load(const uint8_t* block, int part) {
    const uint8_t* codes = block + 2 + 8 * part;
    return {{load_word_2aligned(codes), load_word_2aligned(codes + 4)},
            load_half_below(block, load_readonly(block + 66 + part))};
  }
  static int run_offset(int part, int run) { return part * 32 + run * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<16> codes(const Slice& s, int run) {
    Codes<16> c;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const uint32_t octet = (run == 0 ? s.octets[0] : s.octets[1]) >> (16 * k);
      put_octet(c.words + 2 * k, look_up_octet(kLevels, kGrid.entries[octet & 511]), sign_byte(octet >> 9));
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int run) {
    return {low_f16(s.tail) * static_cast<float>(2 * ((s.tail >> (16 + 4 * run)) & 15) + 1) * 0.125f, 0.0f};
  }
};

}  // namespace cudabk
