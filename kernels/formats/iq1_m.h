// iq1_m: 256 elements in 56 bytes: 32 bytes of table entries (an octet each), 16 bytes with a nibble per octet (the
// entry's high three bits and the sign of the shift), four times 16 bits: four 3-bit scales, each of 16 elements, and
// four bits of the f16 d. Values as of iq1_s.
#pragma once

#include "formats/format.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::iq1_m) struct Format<T> {
  static constexpr int kBytes = 56, kBlock = 256;
  static constexpr SliceShape kShape = slice_shape(T);
  static constexpr bool kSigned = true, kHasOffset = false;
  static constexpr Selectors8<2048> kGrid = selectors8(iq1s_grid());
  // Part g: 32 elements from 32g on, two scales.
  struct Slice {
    uint32_t entries;
    uint32_t fields;  // four nibbles
    u32x2 scales;
  };

  static Slice load(const uint8_t* block, int part) {
    return {load_readonly(reinterpret_cast<const uint32_t*>(block) + part),
            load_readonly(reinterpret_cast<const uint16_t*>(block + 32) + part),
            load_readonly(reinterpret_cast<const u32x2*>(block + 48))};
  }
  static int run_offset(int part, int run) { return part * 32 + run * 16; }
  static ChunkPlace place(int chunk) { return {chunk / 2, chunk % 2}; }

  static Codes<16> codes(const Slice& s, int run) {
    Codes<16> c;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const uint32_t field = s.fields >> (8 * run + 4 * k);
      const uint32_t entry = ((s.entries >> (16 * run + 8 * k)) & 255) | (field & 7) << 8;
      const u32x2 octet = look_up_octet(shifted_iq1_levels((field & 8) != 0), kGrid.entries[entry]);
      c.words[2 * k] = octet.x;
      c.words[2 * k + 1] = octet.y;
    }
    return c;
  }
  static f32x2 scale(const Slice& s, int part, int run) {
    const uint32_t x = s.scales.x, y = s.scales.y;
    const uint32_t d = ((x >> 12) & 0x000f) | ((x >> 24) & 0x00f0) | ((y >> 4) & 0x0f00) | ((y >> 16) & 0xf000);
    const uint32_t word = (part >= 4 ? y : x) >> (16 * (part / 2 % 2));
    const uint32_t scale = (word >> (6 * (part % 2) + 3 * run)) & 7;
    return {to_float(f16{static_cast<uint16_t>(d)}) * static_cast<float>(2 * scale + 1) * 0.125f, 0.0f};
  }
};

}  // namespace cudabk
