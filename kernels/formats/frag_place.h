// Where an element of a unit of the `frag` layout (frag_shape.h) is: the inverse of what frag.h decodes. Plain C++.
#pragma once

#include "formats/frag_shape.h"

namespace cudabk {

// Bits of a plane: the lowest one is bit `bit` of the 4-byte word at byte `offset` of the unit.
struct FragPlace {
  int offset, bit;
};

// Where the high bits of place i begin.
constexpr int high_bit_start(int bits, int low_bits, int place) {
  if (low_bits == 4 && bits == 1) {
    return place % 4 + 8 * (place / 4);
  }
  return (low_bits == 4 ? 2 : 1) * (place % 2) + 8 * (place / 2);
}

// An element's coordinates in its tile: row g + 8h, element 16j + 4t + 2p + o.
struct FragElement {
  int tile, g, h, j, t, p, o;
};
constexpr FragElement frag_element(int row, int k) {
  return {k / 64, row % 8, row / 8, k / 16 % 4, k / 4 % 4, k / 2 % 2, k % 2};
}

// Byte of a lane's word in a plane of `words` words per lane and tile.
constexpr int frag_word_offset(int words, int tile, int lane, int word) {
  if (words < 4) {
    return ((tile * 32 + lane) * words + word) * 4;
  }
  return ((tile * (words / 4) + word / 4) * 32 + lane) * 16 + word % 4 * 4;
}

// The low bits of the code (not of a book's entry) of element k (0 .. 255) of row `row` (0 .. 15) of the unit.
constexpr FragPlace frag_low_place(FragShape s, int row, int k) {
  const FragElement e = frag_element(row, k);
  int word = e.j, bit = 8 * e.p + 4 * e.h + 16 * e.o;
  if (s.codes == FragCodes::kTable16) {
    bit = 4 * (4 * e.h + 2 * e.p + e.o);
  } else if (s.low_bits == 2) {
    word = e.j / 2;
    bit = 8 * e.p + 4 * (e.j % 2) + 2 * e.h + 16 * e.o;
  } else if (s.low_bits == 8) {
    word = 2 * e.j + e.h;
    bit = 8 * e.p + 16 * e.o;
  }
  return {frag_word_offset(s.low_words(), e.tile, 4 * e.g + e.t, word), bit};
}

// The high bits. Precondition: the shape has some.
constexpr FragPlace frag_high_place(FragShape s, int row, int k) {
  const FragElement e = frag_element(row, k);
  const bool pairs = s.low_bits == 4;
  const int first = pairs && s.high_bits == 1 ? 2 * e.j : (pairs ? e.j % 2 * 2 : e.j / 2 * 2);
  const int word = s.high_bits == 2 ? e.j / 2 : 0;
  const int inner = pairs ? 4 * e.h : 4 * (e.j % 2) + 2 * e.h;
  return {s.high_offset() + frag_word_offset(s.high_words(), e.tile, 4 * e.g + e.t, word),
          high_bit_start(s.high_bits, s.low_bits, first + e.p) + inner + 16 * e.o};
}

// ---- entries of a code book ----

// Where octet `octet` (0 .. 31) of row `row` of a unit is: its tile, the pair of lanes (2g, for the second octet of a
// step 2g + 1), half of the rows h, step of 16 j.
struct FragOctet {
  int tile, pair, h, j;
};
constexpr FragOctet frag_octet(int row, int octet) {
  return {octet / 8, row % 8 * 2 + octet % 2, row / 8, octet / 2 % 4};
}

// A pair of lanes has, per tile, two words of the low plane, one for each h, and a word, half or byte of the high
// plane. A part of an entry's number: `count` bits, the number's bits from `first` on. They are in word h of the low
// plane or in the pair's high bits, from bit `bit` on and from bit 0 on where they reach beyond bit 31.
struct FragBookPart {
  bool high;
  int bit, first, count;
};
// Numbers are whole where one rotation brings them to bits 2 and above, a place in the book: as many steps as fit into
// word h, with the next one or two in the high plane. Only the last step of four may be in two parts. part: 0, 1.
constexpr FragBookPart frag_book_part(FragShape s, int h, int j, int part) {
  const int width = s.low_bits + s.high_bits, whole = 32 / width, left = 32 - whole * width;
  if (j < whole) {
    return {false, 2 + j * width, 0, part == 0 ? width : 0};
  }
  const int high = 4 * s.high_bits * h;  // where the bits of h begin
  if (j < 3) {
    return {true, high + 2, 0, part == 0 ? width : 0};
  }
  if (part == 0) {
    return {false, (2 + whole * width) % 32, 0, left};
  }
  return {true, whole == 3 ? high : (high + 2 + width) % 32, left, width - left};
}

// Byte of the unit where the 4-byte word begins that the part is in; moved: bits of the word below the pair's high
// bits.
struct FragBookPlace {
  int offset, moved;
};
constexpr FragBookPlace frag_book_place(FragShape s, const FragOctet& o, const FragBookPart& part) {
  const int pair = o.tile * 16 + o.pair;
  if (!part.high) {
    return {pair * 8 + o.h * 4, 0};
  }
  const int byte = pair * s.high_bits;
  return {s.high_offset() + byte / 4 * 4, byte % 4 * 8};
}

// The sign of an element: bits 0 .. 15 of a lane's word belong to row g, the others to row g + 8; four bits, one per
// step of 16, to the nibble that decoding makes of an element (frag_book.h).
constexpr int frag_sign_bit(int j) { return j < 3 ? 2 - j : 3; }
constexpr FragPlace frag_sign_place(FragShape s, int row, int k) {
  const FragElement e = frag_element(row, k);
  return {s.sign_offset() + (e.tile * 32 + 4 * e.g + e.t) * 4, 16 * e.h + 4 * (e.p + 2 * e.o) + frag_sign_bit(e.j)};
}

// Byte of the unit where the entry of a row's group number `group` (of the unit) starts. kByteMin: the scale; the
// minimum is 2 bytes behind it.
constexpr int frag_entry_offset(FragShape s, int row, int group) {
  const int bytes = s.scale == FragScale::kHalf ? 2 : (s.scale == FragScale::kHalfMin ? 4 : 1);
  return s.group_offset() + (group / s.groups_per_tile() * kFragRows + row) * s.group_bytes() +
         group % s.groups_per_tile() * bytes;
}

// What an entry is where there is nothing: a scale of zero.
constexpr uint32_t frag_empty_entry(FragShape s) { return s.scale == FragScale::kByte ? 128 : 0; }

// Decoded (frag.h), a code in row half h of a step of 16 of this parity is 1024 + factor * code, which is this much too
// high per unit of factor.
constexpr float frag_factor(FragShape s, int parity, int h) {
  if (s.codes != FragCodes::kLinear || s.low_bits == 8) {
    return 1;
  }
  return s.low_bits == 4 ? (h == 0 ? 1.0f : 16.0f) : static_cast<float>(1 << (4 * parity + 2 * h));
}
constexpr float frag_decoded_zero(FragShape s, int parity, int h) { return 1024 + frag_factor(s, parity, h) * s.zero; }
// What a product's start value takes off, per unit of activation: the same, but nothing where products look up values.
constexpr bool frag_has_starts(FragShape s) { return s.codes != FragCodes::kTable16; }
constexpr float frag_start_zero(FragShape s, int parity, int h) {
  return frag_has_starts(s) ? frag_decoded_zero(s, parity, h) : 0;
}

// Strips and units of an m x k matrix, and its bytes.
constexpr int64_t frag_strips(int64_t m) { return (m + kFragRows - 1) / kFragRows; }
constexpr int64_t frag_units(int64_t k) { return (k + kFragDepth - 1) / kFragDepth; }
constexpr int64_t frag_bytes(FragShape s, int64_t m, int64_t k) {
  return frag_strips(m) * frag_units(k) * s.unit_bytes();
}

}  // namespace cudabk
