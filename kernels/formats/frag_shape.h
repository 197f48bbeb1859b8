// The `frag` layout of weights: codes in the order in which tensor cores take them. Plain C++, read by kernels and by
// lowering.
//
// A *strip* is 16 rows; a *unit* is a strip x 256 elements of k; a *tile* is a quarter of a unit, 64 elements. Units of
// a strip follow each other along k, strips along m; rows are padded to 16 and k to 256 with codes and scales of zero.
// A unit is [low plane][high plane][sign plane][group scales][row scales]:
//   planes        [tile][lane][words]: the words of lane 4g + t hold codes of rows g and g + 8, see frag.h. Of types
//   with
//                 a code book the first two planes hold entries of the book instead, [tile][pair of lanes][bytes]
//                 (frag_book.h), and the third one signs.
//   group scales  [tile][16 rows][bytes]: one entry per group of 16 or 32 elements
//   row scales    [16 rows][bytes]
#pragma once

#include "formats/dtypes.h"

namespace cudabk {

enum class FragCodes : uint8_t {
  kLinear,   // value = code - zero
  kTable16,  // value = one of 16 small integers
  kBook8,    // value = one of 8 small integers; an entry of a code book says which ones 8 elements have
};

enum class FragScale : uint8_t {
  kHalf,       // f16 d per group
  kHalfMin,    // f16 d and f16 min per group
  kByte,       // s8 per group, f16 d per row
  kByteMin,    // u8 scale and u8 min per group, f16 d and f16 dmin per row
  kNibbleMin,  // u4 scale and u4 min per group in a byte, f16 d and f16 dmin per row
  kExponent,   // e8m0 per group
};

struct FragShape {
  // Of a code: planes of 2, 4 or 8 and of 0, 1 or 2 bits; 0 0: no such layout. With a book, of the number of an entry:
  // 8, and 0, 1, 2 or 4.
  int low_bits = 0, high_bits = 0;
  int group = 32;  // elements that share a scale: 16 or 32
  FragCodes codes = FragCodes::kLinear;
  FragScale scale = FragScale::kHalf;
  float zero = 0;
  float unit = 1;      // value = unit * scale * (code - zero) - min; a power of two
  bool signs = false;  // a plane of a bit per element

  constexpr bool exists() const { return low_bits != 0; }
  constexpr bool has_book() const { return codes == FragCodes::kBook8; }
  constexpr int groups_per_tile() const { return 64 / group; }
  // Words of a lane and tile: 16 rows x 64 / 32 lanes x bits / 32. Those of a book's entries are shared by two lanes.
  constexpr int low_words() const { return has_book() ? 2 : low_bits; }
  constexpr int high_words() const { return has_book() && high_bits != 0 ? 1 : high_bits; }
  constexpr int sign_words() const { return signs ? 1 : 0; }
  constexpr int all_words() const { return low_words() + high_words() + sign_words(); }
  constexpr int group_bytes() const {  // of a row and tile
    switch (scale) {
      case FragScale::kHalf:
        return 2 * groups_per_tile();
      case FragScale::kHalfMin:
        return 4 * groups_per_tile();
      case FragScale::kByteMin:
        return 2 * groups_per_tile();
      default:
        return groups_per_tile();
    }
  }
  constexpr int row_bytes() const {
    switch (scale) {
      case FragScale::kByte:
        return 2;
      case FragScale::kByteMin:
      case FragScale::kNibbleMin:
        return 4;
      default:
        return 0;
    }
  }
  constexpr bool has_min() const {
    return scale == FragScale::kHalfMin || scale == FragScale::kByteMin || scale == FragScale::kNibbleMin;
  }
  // Offsets in a unit, bytes. Entries: 4 tiles x 16 pairs of lanes x 8 octets x bits / 8.
  constexpr int high_offset() const { return 4 * (has_book() ? 16 * low_bits : 128 * low_bits); }
  constexpr int sign_offset() const { return high_offset() + 4 * (has_book() ? 16 * high_bits : 128 * high_bits); }
  constexpr int group_offset() const { return sign_offset() + 4 * 128 * sign_words(); }
  constexpr int row_offset() const { return group_offset() + 4 * 16 * group_bytes(); }
  constexpr int unit_bytes() const { return row_offset() + 16 * row_bytes(); }
};

constexpr int kFragRows = 16, kFragDepth = 256;  // of a unit

constexpr FragShape frag_shape(DType type) {
  using enum FragCodes;
  using enum FragScale;
  switch (type) {
    case DType::q4_0:
      return {4, 0, 32, kLinear, kHalf, 8};
    case DType::q4_1:
      return {4, 0, 32, kLinear, kHalfMin, 0};
    case DType::q5_0:
      return {4, 1, 32, kLinear, kHalf, 16};
    case DType::q5_1:
      return {4, 1, 32, kLinear, kHalfMin, 0};
    case DType::q8_0:
      return {8, 0, 32, kLinear, kHalf, 128};
    case DType::q2_K:
      return {2, 0, 16, kLinear, kNibbleMin, 0};
    case DType::q3_K:
      return {2, 1, 16, kLinear, kByte, 4};
    case DType::q4_K:
      return {4, 0, 32, kLinear, kByteMin, 0};
    case DType::q5_K:
      return {4, 1, 32, kLinear, kByteMin, 0};
    case DType::q6_K:
      return {4, 2, 16, kLinear, kByte, 32};
    case DType::iq3_s:
      return {4, 0, 32, kLinear, kByte, 7.5f, 2};
    case DType::iq4_nl:
      return {4, 0, 32, kTable16, kHalf, 128};
    case DType::iq4_xs:
      return {4, 0, 32, kTable16, kByte, 128};
    case DType::mxfp4:
      return {4, 0, 32, kTable16, kExponent, 128};
    case DType::iq3_xxs:
      return {4, 0, 32, kTable16, kByte, 128, 0.25f};
    case DType::iq2_xxs:
      return {8, 0, 32, kBook8, kByte, 128, 0.125f, true};
    case DType::iq2_xs:
      return {8, 1, 16, kBook8, kByte, 128, 0.125f, true};
    case DType::iq2_s:
      return {8, 2, 16, kBook8, kByte, 128, 0.125f, true};
    case DType::iq1_s:  // 11 bits, and one for the sign of the shift
      return {8, 4, 32, kBook8, kByte, 128, 0.125f};
    case DType::iq1_m:
      return {8, 4, 16, kBook8, kByte, 128, 0.125f};
    default:
      return {};
  }
}

// A code book is read from the beginning of a block's shared memory, 4 bytes per entry (frag_book.h).
constexpr int frag_book_bytes(DType type) {
  const FragShape s = frag_shape(type);
  return s.has_book() ? 4 << (s.low_bits + s.high_bits) : 0;
}
// Tables of 16 are read from there too (frag_lookup.h): [byte][lane][4 bytes], `stride` bytes from byte to byte. 256
// saves an instruction per look-up and wants twice the memory.
constexpr bool has_frag_lookup(DType type) { return frag_shape(type).codes == FragCodes::kTable16; }
constexpr int frag_lookup_bytes(DType type, int stride = 128) {
  return has_frag_lookup(type) ? 256 * stride : frag_book_bytes(type);
}
// Where an SM's shared memory holds two blocks with the large table. cc: 80, 86, 90, ...
constexpr int frag_wide_lookup_stride(int cc) { return cc == 80 || (cc >= 90 && cc < 120) ? 256 : 128; }

}  // namespace cudabk
