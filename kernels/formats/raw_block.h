// The raw blocks of the formats field by field, in both directions, for changing layouts. RawBlock<T>:
//
//   code(block, i)   the code of element i as the `frag` layout keeps it (frag_shape.h)
//   entry(block, g)  the entry of group g of 16 or 32 elements: 8, 16 or 32 bits; kByteMin: scale, 8 bits of minimum
//   row(block)       d, or d and dmin above it
//   byte(v, i)       the inverse: byte i of the block, where v.code(i), v.entry(g), v.row() are the above
//
// Instead of codes, types whose `frag` layout keeps entries of a code book have
//
//   number(block, o)  the number of the entry of octet o; iq1: bit 11 is the sign of the shift
//   signs(block, o)   a bit per element of the octet; iq1: 0
//
// No bit is lost either way. Formats with code books are in raw_grid_block.h.
#pragma once

#include "formats/dtypes.h"
#include "platform/types.h"

namespace cudabk {

template <DType T>
struct RawBlock;

inline uint32_t half_at(const uint8_t* p) { return p[0] | static_cast<uint32_t>(p[1]) << 8; }
inline uint32_t word_at(const uint8_t* p) { return half_at(p) | half_at(p + 2) << 16; }
inline uint32_t nibble_at(const uint8_t* p, int i) { return (p[i / 2] >> (i % 2 * 4)) & 15u; }

// ---- 32 elements: scale, fifth bits, nibbles (elements 0..15 low, 16..31 high) ----

template <DType T>
requires(T == DType::q4_0 || T == DType::q4_1 || T == DType::q5_0 || T == DType::q5_1 || T == DType::iq4_nl ||
         T == DType::mxfp4) struct RawBlock<T> {
  static constexpr int kScale = T == DType::mxfp4 ? 1 : (T == DType::q4_1 || T == DType::q5_1 ? 4 : 2);  // bytes
  static constexpr bool kFifth = T == DType::q5_0 || T == DType::q5_1;
  static constexpr int kNibbles = kScale + (kFifth ? 4 : 0);

  static uint32_t code(const uint8_t* b, int i) {
    const uint32_t low = (b[kNibbles + i % 16] >> (i / 16 * 4)) & 15u;
    return kFifth ? low | ((b[kScale + i / 8] >> (i % 8)) & 1u) << 4 : low;
  }
  static uint32_t entry(const uint8_t* b, int /*g*/) {
    uint32_t e = 0;
    for (int i = 0; i < kScale; ++i) {
      e |= static_cast<uint32_t>(b[i]) << (8 * i);
    }
    return e;
  }
  static uint32_t row(const uint8_t* /*b*/) { return 0; }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < kScale) {
      return v.entry(0) >> (8 * i);
    }
    if (i < kNibbles) {
      uint32_t bits = 0;
      for (int e = 0; e < 8; ++e) {
        bits |= (v.code(8 * (i - kScale) + e) >> 4 & 1) << e;
      }
      return bits;
    }
    return (v.code(i - kNibbles) & 15) | (v.code(i - kNibbles + 16) & 15) << 4;
  }
};

template <DType T>
requires(T == DType::q8_0) struct RawBlock<T> {
  static uint32_t code(const uint8_t* b, int i) { return b[2 + i] ^ 0x80u; }
  static uint32_t entry(const uint8_t* b, int /*g*/) { return half_at(b); }
  static uint32_t row(const uint8_t* /*b*/) { return 0; }
  template <class V>
  static uint32_t byte(const V& v, int i) {
    return i < 2 ? v.entry(0) >> (8 * i) : v.code(i - 2) ^ 0x80u;
  }
};

// ---- 256 elements ----

template <DType T>
requires(T == DType::iq4_xs) struct RawBlock<T> {
  static uint32_t code(const uint8_t* b, int i) { return (b[8 + i / 32 * 16 + i % 16] >> (i / 16 % 2 * 4)) & 15u; }
  static uint32_t entry(const uint8_t* b, int g) {  // six bits, 32 is zero
    return (nibble_at(b + 4, g) | ((b[2 + g / 4] >> (g % 4 * 2)) & 3u) << 4) + 96;
  }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 4) {
      uint32_t bits = 0;
      for (int g = 0; g < 4; ++g) {
        bits |= ((v.entry(4 * (i - 2) + g) - 96) >> 4 & 3) << (2 * g);
      }
      return bits;
    }
    if (i < 8) {
      return ((v.entry(2 * (i - 4)) - 96) & 15) | ((v.entry(2 * (i - 4) + 1) - 96) & 15) << 4;
    }
    const int first = (i - 8) / 16 * 32 + (i - 8) % 16;
    return (v.code(first) & 15) | (v.code(first + 16) & 15) << 4;
  }
};

template <DType T>
requires(T == DType::q4_K || T == DType::q5_K) struct RawBlock<T> {
  static constexpr bool kFifth = T == DType::q5_K;
  static constexpr int kNibbles = kFifth ? 48 : 16;

  static uint32_t code(const uint8_t* b, int i) {
    const int group = i / 32;
    const uint32_t low = (b[kNibbles + group / 2 * 32 + i % 32] >> (group % 2 * 4)) & 15u;
    return kFifth ? low | ((b[16 + i % 32] >> group) & 1u) << 4 : low;
  }
  static uint32_t entry(const uint8_t* b, int g) {
    const uint8_t* s = b + 4;
    const uint32_t scale = g < 4 ? s[g] & 63u : (s[g + 4] & 15u) | (s[g - 4] >> 6 & 3u) << 4;
    const uint32_t min = g < 4 ? s[g + 4] & 63u : (s[g + 4] >> 4 & 15u) | (s[g] >> 6 & 3u) << 4;
    return scale | min << 8;
  }
  static uint32_t row(const uint8_t* b) { return word_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 4) {
      return v.row() >> (8 * i);
    }
    if (i < 16) {  // groups 0..3 have six bits in a byte; the others four in the last bytes, two above the former
      const int g = (i - 4) % 4, shift = i < 8 ? 0 : 8;
      const uint32_t low = v.entry(g), high = v.entry(g + 4);
      return i < 12 ? (low >> shift & 63) | (high >> (shift + 4) & 3) << 6 : (high & 15) | (high >> 8 & 15) << 4;
    }
    if (i < kNibbles) {
      uint32_t bits = 0;
      for (int g = 0; g < 8; ++g) {
        bits |= (v.code(32 * g + i - 16) >> 4 & 1) << g;
      }
      return bits;
    }
    const int first = (i - kNibbles) / 32 * 64 + (i - kNibbles) % 32;
    return (v.code(first) & 15) | (v.code(first + 32) & 15) << 4;
  }
};

// Bit pairs as q2_K and q3_K hold them: in each half of 128 elements, column c of 32 has bits 2c of the half's bytes.
inline uint32_t pair_at(const uint8_t* pairs, int i) { return (pairs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3u; }
template <class V>
uint32_t pair_byte(const V& v, int i, int shift) {  // bits `shift` and above of the codes
  uint32_t bits = 0;
  for (int c = 0; c < 4; ++c) {
    bits |= (v.code(i / 32 * 128 + 32 * c + i % 32) >> shift & 3) << (2 * c);
  }
  return bits;
}

template <DType T>
requires(T == DType::q2_K) struct RawBlock<T> {
  static uint32_t code(const uint8_t* b, int i) { return pair_at(b + 16, i); }
  static uint32_t entry(const uint8_t* b, int g) { return b[g]; }
  static uint32_t row(const uint8_t* b) { return word_at(b + 80); }
  template <class V>
  static uint32_t byte(const V& v, int i) {
    return i < 16 ? v.entry(i) : (i < 80 ? pair_byte(v, i - 16, 0) : v.row() >> (8 * (i - 80)));
  }
};

template <DType T>
requires(T == DType::q3_K) struct RawBlock<T> {
  static uint32_t code(const uint8_t* b, int i) { return pair_at(b + 32, i) | ((b[i % 32] >> (i / 32)) & 1u) << 2; }
  static uint32_t entry(const uint8_t* b, int g) {  // six bits, 32 is zero
    return (((b[96 + g % 8] >> (g / 8 * 4)) & 15u) | ((b[104 + g % 4] >> (g / 4 * 2)) & 3u) << 4) + 96;
  }
  static uint32_t row(const uint8_t* b) { return half_at(b + 108); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    uint32_t bits = 0;
    if (i < 32) {
      for (int g = 0; g < 8; ++g) {
        bits |= (v.code(32 * g + i) >> 2 & 1) << g;
      }
    } else if (i < 96) {
      bits = pair_byte(v, i - 32, 0);
    } else if (i < 104) {
      bits = ((v.entry(i - 96) - 96) & 15) | ((v.entry(i - 96 + 8) - 96) & 15) << 4;
    } else if (i < 108) {
      for (int g = 0; g < 4; ++g) {
        bits |= ((v.entry(4 * g + i - 104) - 96) >> 4 & 3) << (2 * g);
      }
    } else {
      bits = v.row() >> (8 * (i - 108));
    }
    return bits;
  }
};

template <DType T>
requires(T == DType::q6_K) struct RawBlock<T> {
  static uint32_t code(const uint8_t* b, int i) {
    const int column = i / 32 % 4;
    const uint32_t low = (b[i / 128 * 64 + column % 2 * 32 + i % 32] >> (column / 2 * 4)) & 15u;
    return low | pair_at(b + 128, i) << 4;
  }
  static uint32_t entry(const uint8_t* b, int g) { return b[192 + g] ^ 0x80u; }
  static uint32_t row(const uint8_t* b) { return half_at(b + 208); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 128) {
      const int first = i / 64 * 128 + i % 64;
      return (v.code(first) & 15) | (v.code(first + 64) & 15) << 4;
    }
    return i < 192 ? pair_byte(v, i - 128, 4) : (i < 208 ? v.entry(i - 192) ^ 0x80u : v.row() >> (8 * (i - 208)));
  }
};

}  // namespace cudabk
