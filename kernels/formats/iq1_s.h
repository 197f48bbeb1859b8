// iq1_s: 256 elements in 50 bytes: f16 d, 32 bytes of table entries (an octet each), then per group of 32 elements 16
// bits: the high three bits of its four entries, a 3-bit scale, the sign of the shift. A value is d (2 scale + 1) (g +
// shift) with g in {-1, 0, 1} and shift = 1/8 or -1/8: codes are 8 (g + shift).
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq1_s) struct Format<T> {
  static constexpr int kBytes = 50, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr Selectors8<2048> kGrid = selectors8(iq1s_grid());
  // Part g: group g.
  struct Slice {
    uint32_t entries;
    uint32_t tail;  // d, then the 16 bits
  };

  static Slice load(const uint8_t* block, int part) {
    const auto* fields = reinterpret_cast<const uint16_t*>(block + 34);
    return {load_word_2aligned(block + 2 + 4 * part), load_half_below(block, load_readonly(fields + part))};
  }
  static int run_offset(int part, int /*run*/) { return part * 32; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<32> codes(const Slice& s, int /*run*/) {
    const uint32_t levels = shifted_iq1_levels(s.tail >> 31 != 0);
    Codes<32> c;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t entry = ((s.entries >> (8 * k)) & 255) | ((s.tail >> (16 + 3 * k)) & 7) << 8;
      const u32x2 octet = look_up_octet(levels, kGrid.entries[entry]);
      c.words[2 * k] = octet.x;
      c.words[2 * k + 1] = octet.y;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int /*part*/, int /*run*/) {
    return {low_f16(s.tail) * static_cast<float>(2 * ((s.tail >> 28) & 7) + 1) * 0.125f, 0.0f};
  }
};

}  // namespace cudabk
