// From packed fields to bytes of codes: spread bits, signs, and look-ups of levels by byte_perm.
#pragma once

#include "formats/codebooks.h"
#include "platform/platform.h"

namespace cudabk {

// Bits 0..3 of `bits` as the lowest bits of the four bytes.
inline uint32_t spread_bits(uint32_t bits) { return ((bits & 15) * 0x00204081u) & 0x01010101u; }

// Bytes of `magnitudes` (1 to 127), negated where the bit of `signs` (bits 0..3) is set.
inline uint32_t with_signs(uint32_t magnitudes, uint32_t signs) {
  const uint32_t ones = spread_bits(signs);
  return (magnitudes ^ (ones * 255)) + ones;
}

// A seven-bit sign field with bit 7 such that the number of set bits is even.
inline uint32_t sign_byte(uint32_t field) {
  field &= 127;
  return field | (count_bits(field) & 1) << 7;
}

// Levels first .. first + 3 as the bytes of a word.
template <int N>
constexpr uint32_t level_word(const Levels<N>& levels, int first) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<uint32_t>(static_cast<uint8_t>(levels.values[first + i])) << (8 * i);
  }
  return word;
}

// Selectors of byte_perm: the low three bits of every nibble.
inline uint32_t selector(uint32_t nibbles) { return nibbles & 0x7777; }

// Levels of the lower four nibbles of `nibbles`: each half of the table is looked up by the low three bits, the fourth
// bit takes one of the two.
inline uint32_t look_up_four(const Levels<16>& levels, uint32_t nibbles) {
  const uint32_t low = byte_perm(level_word(levels, 0), level_word(levels, 4), selector(nibbles));
  const uint32_t high = byte_perm(level_word(levels, 8), level_word(levels, 12), selector(nibbles));
  return byte_perm(low, high, 0x3210 | ((nibbles & 0x8888) >> 1));
}

// Levels of the four low nibbles (x) and of the four high nibbles (y) of a word's bytes.
inline u32x2 look_up_bytes(const Levels<16>& levels, uint32_t word) {
  const uint32_t first = look_up_four(levels, word), second = look_up_four(levels, word >> 16);
  return {byte_perm(first, second, 0x6420), byte_perm(first, second, 0x7531)};
}

// Grids of eight values with 2-bit level numbers: a number a nibble, as byte_perm takes them. One table per format that
// is used.
template <int N>
struct Selectors8 {
  uint32_t entries[N];
};
template <int N>
constexpr Selectors8<N> selectors8(const Grid<N>& grid) {
  Selectors8<N> table{};
  for (int i = 0; i < N; ++i) {
    uint32_t x = grid[i];
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    table.entries[i] = (x | x << 2) & 0x33333333;
  }
  return table;
}

// Eight levels (x: elements 0..3).
inline u32x2 look_up_octet(uint32_t levels, uint32_t selectors) {
  return {byte_perm(levels, 0, selector(selectors)), byte_perm(levels, 0, selector(selectors >> 16))};
}

// The levels of the iq1 grid with their shift, times 8: 8 g + 1 or 8 g - 1.
inline uint32_t shifted_iq1_levels(bool minus) { return minus ? 0x0007fff7 : 0x000901f9; }

// Stores the octet of magnitudes with the signs of a byte (higher bits do not matter).
inline void put_octet(uint32_t* words, u32x2 magnitudes, uint32_t signs) {
  words[0] = with_signs(magnitudes.x, signs);
  words[1] = with_signs(magnitudes.y, signs >> 4);
}

// Grids of four values with 3-bit level numbers.
template <int N>
struct Selectors4 {
  uint16_t entries[N];
};
template <int N>
constexpr Selectors4<N> selectors4(const Grid<N>& grid) {
  Selectors4<N> table{};
  for (int i = 0; i < N; ++i) {
    const uint32_t x = grid[i];
    table.entries[i] = static_cast<uint16_t>((x & 7) | (x & (7 << 3)) << 1 | (x & (7 << 6)) << 2 | (x & (7 << 9)) << 3);
  }
  return table;
}

}  // namespace cudabk
