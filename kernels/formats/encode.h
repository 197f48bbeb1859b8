// Encoding of the 32-element formats on the device. Encode<T> is all that a kernel knows of an encoder:
//
//   kBytes                      bytes of a block
//   encode(v, part, block)      writes one block. Eight neighbouring lanes share it; lane `part` of them (lane() % 8)
//   has
//                               elements 4 * part .. 4 * part + 3. Every lane of the warp takes part, four blocks at a
//                               time. `block`: shared memory, 2-byte aligned, complete after the next warp_sync().
//
// Rounding is that of the format specification, operation by operation: products are rounded before an addition,
// divisions are exact, the scale is rounded to f16 only after its inverse was taken. Bit for bit the reference, but for
// the order of a sum in iq4_nl.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <DType T>
struct Encode;

constexpr int kEncodeBlock = 32;  // elements
constexpr int kEncodeLanes = 8;   // lanes that share a block
constexpr int kEncodeElements = kEncodeBlock / kEncodeLanes;

// Four elements of a block, or their codes.
struct FourFloats {
  float v[kEncodeElements];
};
struct FourCodes {
  int v[kEncodeElements];
};

// ---- over the eight lanes of a block ----

inline float group_max(float v) {
  for (int mask = 1; mask < kEncodeLanes; mask *= 2) {
    v = max_f(v, shuffle_xor(v, mask));
  }
  return v;
}
inline float group_min(float v) {
  for (int mask = 1; mask < kEncodeLanes; mask *= 2) {
    v = min_f(v, shuffle_xor(v, mask));
  }
  return v;
}
inline float group_sum(float v) {
  for (int mask = 1; mask < kEncodeLanes; mask *= 2) {
    v = add_rounded(v, shuffle_xor(v, mask));
  }
  return v;
}

inline float group_magnitude(const FourFloats& x) {
  return group_max(max_f(max_f(abs_f(x.v[0]), abs_f(x.v[1])), max_f(abs_f(x.v[2]), abs_f(x.v[3]))));
}

// The first element of largest magnitude, with its sign; +0 for a block of zeros.
inline float group_extreme(const FourFloats& x, int part) {
  const float magnitude = group_magnitude(x);
  int first = 2 * kEncodeBlock;  // twice the element's number, plus its sign
  for (int i = kEncodeElements - 1; i >= 0; --i) {
    first = abs_f(x.v[i]) == magnitude ? 2 * (kEncodeElements * part + i) + (x.v[i] < 0.0f ? 1 : 0) : first;
  }
  for (int mask = 1; mask < kEncodeLanes; mask *= 2) {
    const int other = shuffle_xor(first, mask);
    first = other < first ? other : first;
  }
  return first % 2 != 0 ? -magnitude : magnitude;
}

struct LowHigh {
  float low, high;
};
inline LowHigh group_range(const FourFloats& x) {
  return {group_min(min_f(min_f(x.v[0], x.v[1]), min_f(x.v[2], x.v[3]))),
          group_max(max_f(max_f(x.v[0], x.v[1]), max_f(x.v[2], x.v[3])))};
}

// ---- codes ----

inline float inverse_or_zero(float d) { return d != 0.0f ? divide(1.0f, d) : 0.0f; }

// Codes of a format whose first extreme gets code 0; `half` is the code of zero.
template <int Half>
FourCodes symmetric_codes(const FourFloats& x, float inverse) {
  FourCodes codes;
  for (int i = 0; i < kEncodeElements; ++i) {
    const int code = truncate_to_int(add_rounded(mul_rounded(x.v[i], inverse), static_cast<float>(Half) + 0.5f));
    codes.v[i] = code < 2 * Half - 1 ? code : 2 * Half - 1;
  }
  return codes;
}

template <int Top>
FourCodes offset_codes(const FourFloats& x, float low, float inverse) {
  FourCodes codes;
  for (int i = 0; i < kEncodeElements; ++i) {
    const int code = truncate_to_int(add_rounded(mul_rounded(add_rounded(x.v[i], -low), inverse), 0.5f));
    codes.v[i] = code < Top ? code : Top;
  }
  return codes;
}

// To nearest, halves away from zero.
inline int round_away(float v) {
  const int whole = truncate_to_int(v);
  const float rest = v - static_cast<float>(whole);
  return rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}

// ---- parts of a block ----

inline uint32_t pack_bytes(const FourCodes& c, int mask) {
  return static_cast<uint32_t>(c.v[0] & mask) | static_cast<uint32_t>(c.v[1] & mask) << 8 |
         static_cast<uint32_t>(c.v[2] & mask) << 16 | static_cast<uint32_t>(c.v[3] & mask) << 24;
}

inline void put_half(uint8_t* p, float v) { *reinterpret_cast<uint16_t*>(p) = to_f16(v).bits; }
inline void put_word(uint8_t* p, uint32_t word) {
  auto* halves = reinterpret_cast<uint16_t*>(p);
  halves[0] = static_cast<uint16_t>(word & 0xffff);
  halves[1] = static_cast<uint16_t>(word >> 16);
}

// Sixteen bytes: low nibbles hold elements 0..15, high nibbles 16..31.
inline void put_nibbles(uint8_t* p, const FourCodes& codes, int part) {
  const uint32_t own = pack_bytes(codes, 15);
  const uint32_t upper = shuffle_xor(own, kEncodeLanes / 2);
  if (part < kEncodeLanes / 2) {
    put_word(p + 4 * part, own | upper << 4);
  }
}

// The fifth bits of the 32 codes, as a word whose bit i is element i's.
inline void put_fifth_bits(uint8_t* p, const FourCodes& codes, int part) {
  uint32_t bits = 0;
  for (int i = 0; i < kEncodeElements; ++i) {
    bits |= static_cast<uint32_t>((codes.v[i] >> 4) & 1) << (kEncodeElements * part + i);
  }
  for (int mask = 1; mask < kEncodeLanes; mask *= 2) {
    bits |= shuffle_xor(bits, mask);
  }
  if (part == 0) {
    put_word(p, bits);
  }
}

}  // namespace cudabk
