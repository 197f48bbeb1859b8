// Decoding of the `frag` layout (frag_shape.h) to fragments of m16n8k16 products.
//
// A fragment is four registers of two f16; register h + 2p of lane 4g + t, h, p in {0, 1}, holds row g + 8h, elements
// 16j + 4t + 2p and the one after it, where j is the step of 16 in the tile: a lane's elements of a step follow each
// other, where the product would have them in two places. It does not matter which element is which as long as the
// activations (frag/columns.h, frag/tile_columns.h) come in the same order. The codes come out as
// 1024 + factor * code, exact in f16; factor depends on h and on the parity of j. The product's start value removes the
// 1024 and the zero point (columns.h), the scale divides by the factor.
//
// Positions of a code in the lane's words, lowest bit; the odd element is 16 bits higher:
// * 4 bits: word j, bit 8p + 4h
// * 2 bits: word j / 2, bit 8p + 4 (j % 2) + 2h
// * 8 bits: word 2j + h, bit 8p
// * numbers of a table of 16: word j, nibble 4h + 2p + o, o = 1 for the odd element, so that a register of a fragment
// is
//   a byte of the word
// * 1 high bit on 4: word 0, bit b + 4h, b where place 2j + p begins
// * 2 high bits on 4: word j / 2, bit b + 4h, b where place 2 (j % 2) + p begins
// * 1 high bit on 2: word 0, bit b + 4 (j % 2) + 2h, b where place j / 2 * 2 + p begins
// The place of a high bit is chosen such that one shift brings it above the low bits of both rows.
#pragma once

#include "formats/codebooks.h"
#include "formats/format.h"
#include "formats/frag_book.h"

namespace cudabk {

constexpr uint32_t kF16Magic = 0x64006400u;  // 1024, 1024

// The tables as bytes, 128 added. Four entries per word.
struct FragTable {
  uint32_t words[4];
  constexpr void set(int i, int value) { words[i / 4] |= static_cast<uint32_t>(value + 128) << (i % 4 * 8); }
};
template <int N>
constexpr FragTable frag_table_of(const Levels<N>& levels) {
  FragTable t{};
  for (int i = 0; i < N; ++i) {
    t.set(i, levels[i]);
  }
  return t;
}
// Level, then the same with a sign.
template <int N>
constexpr FragTable signed_table_of(const Levels<N>& levels) {
  FragTable t = frag_table_of(levels);
  for (int i = 0; i < N; ++i) {
    t.set(N + i, -levels[i]);
  }
  return t;
}
constexpr FragTable frag_table(DType type) {
  switch (type) {
    case DType::iq4_nl:
    case DType::iq4_xs:
      return frag_table_of(iq4nl_levels());
    case DType::mxfp4:
      return frag_table_of(fp4_levels());
    case DType::iq3_xxs:
      return signed_table_of(iq3xxs_levels());
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
      return signed_table_of(iq2_levels());
    case DType::iq1_s:  // 8 (grid + delta): delta = 1/8, then -1/8
    case DType::iq1_m:
      return frag_table_of(Levels<8>{{-7, 1, 9, 0, -9, -1, 7, 0}});
    default:
      return {};
  }
}

// Where units are read from: the block's shared memory, global memory that nobody writes, or that an earlier kernel
// wrote.
enum class FragMemory : uint8_t { kShared, kConstant, kWritten };

template <FragMemory Memory, class V>
V read_frag(const uint8_t* p) {
  if constexpr (Memory == FragMemory::kShared) {
    return *reinterpret_cast<const V*>(p);
  } else if constexpr (Memory == FragMemory::kWritten) {
    return load_fresh(reinterpret_cast<const V*>(p));
  } else {
    return load_streaming(reinterpret_cast<const V*>(p));
  }
}

// ---- what a lane holds of one tile ----

template <FragShape S>
struct FragWords {
  static constexpr int kHigh = S.high_words() + S.sign_words();  // words of the two planes
  uint32_t low[S.low_words()];
  uint32_t high[kHigh == 0 ? 1 : kHigh];
};

template <FragMemory Memory, int Words>
void load_lane_words(const uint8_t* plane, int tile, uint32_t (&w)[Words]) {
  const uint8_t* p = plane + (tile * kWarpSize + lane()) * 4 * Words;
  if constexpr (Words == 1) {
    w[0] = read_frag<Memory, uint32_t>(p);
  } else if constexpr (Words == 2) {
    const u32x2 v = read_frag<Memory, u32x2>(p);
    w[0] = v.x, w[1] = v.y;
  } else {
    for (int i = 0; i < Words / 4; ++i) {  // 8 words: two pieces, so that a warp's access stays contiguous
      const u32x4 v = read_frag<Memory, u32x4>(plane + ((tile * (Words / 4) + i) * kWarpSize + lane()) * 16);
      w[4 * i] = v.x, w[4 * i + 1] = v.y, w[4 * i + 2] = v.z, w[4 * i + 3] = v.w;
    }
  }
}

// Of a type with a code book.
template <FragShape S, FragMemory Memory>
void load_book_words(const uint8_t* unit, int tile, FragWords<S>& w) {
  const int own = opaque(lane()), pair = own / 2;
  const u32x2 low = read_frag<Memory, u32x2>(unit + tile * 128 + pair * 8);
  w.low[0] = low.x, w.low[1] = low.y;
  const uint8_t* high = unit + (S.high_offset() + tile * 16 * S.high_bits) + pair * S.high_bits;
  if constexpr (S.high_bits == 1) {
    w.high[0] = read_frag<Memory, uint8_t>(high);
  } else if constexpr (S.high_bits == 2) {
    w.high[0] = read_frag<Memory, uint16_t>(high);
  } else if constexpr (S.high_bits == 4) {
    w.high[0] = read_frag<Memory, uint32_t>(high);
  }
  if constexpr (S.signs) {
    w.high[S.high_words()] = read_frag<Memory, uint32_t>(unit + (S.sign_offset() + tile * 128) + own * 4);
  }
}

template <FragShape S, FragMemory Memory>
FragWords<S> load_frag_words(const uint8_t* unit, int tile) {
  FragWords<S> w;
  if constexpr (S.has_book()) {
    load_book_words<S, Memory>(unit, tile, w);
  } else {
    load_lane_words<Memory, S.low_words()>(unit, tile, w.low);
    if constexpr (S.high_words() != 0) {
      load_lane_words<Memory, S.high_words()>(unit + S.high_offset(), tile, w.high);
    }
  }
  return w;
}

// ---- fragments of step j (0 .. 3) of the tile ----

// A word with its bit `from` moved to bit `to`.
template <int From, int To>
uint32_t align_bit(uint32_t w) {
  if constexpr (From >= To) {
    return w >> (From - To);
  } else {
    return w << (To - From);
  }
}
template <FragShape S, int J, uint32_t Magic>
void linear_fragment(const FragWords<S>& w, uint32_t (&a)[4]) {
  if constexpr (S.low_bits == 8) {
    for (int h = 0; h < 2; ++h) {
      a[h] = byte_perm(w.low[2 * J + h], Magic, 0x5250);
      a[h + 2] = byte_perm(w.low[2 * J + h], Magic, 0x5351);
    }
    return;
  }
  constexpr uint32_t kMask = S.low_bits == 4 ? 0x000f000fu : 0x00030003u << (4 * (J % 2));
  const uint32_t x = w.low[S.low_bits == 4 ? J : J / 2], y = x >> 8;
  a[0] = and_or(x, kMask, Magic);
  a[1] = and_or(x, kMask << S.low_bits, Magic);
  a[2] = and_or(y, kMask, Magic);
  a[3] = and_or(y, kMask << S.low_bits, Magic);
  if constexpr (S.high_bits != 0) {
    constexpr bool kPairs = S.low_bits == 4;
    constexpr int kPlace = kPairs && S.high_bits == 1 ? 2 * J : (kPairs ? J % 2 * 2 : J / 2 * 2);
    const uint32_t v = w.high[S.high_bits == 2 ? J / 2 : 0];
    constexpr uint32_t kHigh = ((1u << S.high_bits) - 1) * 0x00010001u << (kPairs ? 4 : 2 + 4 * (J % 2));
    const uint32_t z0 = align_bit<high_bit_start(S.high_bits, S.low_bits, kPlace), S.low_bits>(v);
    const uint32_t z1 = align_bit<high_bit_start(S.high_bits, S.low_bits, kPlace + 1), S.low_bits>(v);
    a[0] = and_or(z0, kHigh, a[0]);
    a[1] = and_or(z0, kHigh << S.low_bits, a[1]);
    a[2] = and_or(z1, kHigh, a[2]);
    a[3] = and_or(z1, kHigh << S.low_bits, a[3]);
  }
}

// The selected bytes of a table: nibbles 0 .. 3 of `selectors`.
inline uint32_t look_up_8(const FragTable& t, uint32_t selectors) {
  return select_bytes(in_register(t.words[0]), t.words[1], selectors);
}
inline uint32_t look_up_16(const FragTable& t, uint32_t selectors, uint32_t choice) {
  return byte_perm(byte_perm(t.words[0], t.words[1], selectors), byte_perm(t.words[2], t.words[3], selectors), choice);
}

template <DType T, int J, uint32_t Magic>
void table_fragment(const FragWords<frag_shape(T)>& w, uint32_t (&a)[4]) {
  constexpr FragTable kTable = frag_table(T);
  const uint32_t x = w.low[J];
  const uint32_t s = x & 0x77777777u, choice = ((x >> 1) & 0x44444444u) | 0x32103210u;
  const uint32_t v[2] = {look_up_16(kTable, s, choice), look_up_16(kTable, s >> 16, choice >> 16)};
  for (int h = 0; h < 2; ++h) {
    a[h] = byte_perm(v[h], Magic, 0x5150);
    a[h + 2] = byte_perm(v[h], Magic, 0x5352);
  }
}

// In blocks that have filled the book.
template <DType T, int J, uint32_t Magic>
void book_fragment(const FragWords<frag_shape(T)>& w, uint32_t (&a)[4]) {
  constexpr FragShape S = frag_shape(T);
  constexpr FragTable kTable = frag_table(T);
  const uint32_t v[2] = {look_up_8(kTable, book_numbers<S, 0, J>(w.low, w.high)),
                         look_up_8(kTable, book_numbers<S, 1, J>(w.low, w.high))};
  for (int h = 0; h < 2; ++h) {
    a[h] = byte_perm(v[h], Magic, 0x5250);
    a[h + 2] = byte_perm(v[h], Magic, 0x5351);
  }
}

// Magic: 0 leaves the 1024 out: factor * code / 2^24, the integer as a subnormal.
template <DType T, int J, uint32_t Magic = kF16Magic>
void frag_fragment(const FragWords<frag_shape(T)>& w, uint32_t (&a)[4]) {
  if constexpr (frag_shape(T).codes == FragCodes::kLinear) {
    linear_fragment<frag_shape(T), J, Magic>(w, a);
  } else if constexpr (frag_shape(T).has_book()) {
    book_fragment<T, J, Magic>(w, a);
  } else {
    table_fragment<T, J, Magic>(w, a);
  }
}

// ---- scales ----

// The raw words of a row: of the whole k (d, dmin) and of the groups of a tile.
template <FragShape S, FragMemory Memory>
uint32_t load_row_words(const uint8_t* unit, int row) {
  const uint8_t* p = unit + S.row_offset() + row * S.row_bytes();
  if constexpr (S.row_bytes() == 4) {
    return read_frag<Memory, uint32_t>(p);
  } else if constexpr (S.row_bytes() == 2) {
    return read_frag<Memory, uint16_t>(p);
  } else {
    return 0;
  }
}
// The entries of one row: of all groups of a tile, or of the pair of groups number `pair` of the unit.
template <FragMemory Memory, int Bytes>
u32x2 read_entries(const uint8_t* p) {
  if constexpr (Bytes == 8) {
    return read_frag<Memory, u32x2>(p);
  } else if constexpr (Bytes == 4) {
    return {read_frag<Memory, uint32_t>(p), 0};
  } else {
    return {read_frag<Memory, uint16_t>(p), 0};
  }
}
template <FragShape S, FragMemory Memory>
u32x2 load_group_words(const uint8_t* unit, int tile, int row) {
  return read_entries<Memory, S.group_bytes()>(unit + S.group_offset() + (tile * kFragRows + row) * S.group_bytes());
}
template <FragShape S, FragMemory Memory>
u32x2 load_pair_words(const uint8_t* unit, int pair, int row) {
  constexpr int kPairs = S.groups_per_tile() / 2, kBytes = S.group_bytes() / kPairs;
  const int entry = ((pair / kPairs) * kFragRows + row) * kPairs + pair % kPairs;
  return read_entries<Memory, kBytes>(unit + S.group_offset() + entry * kBytes);
}

// Byte I of a word times d, in two instructions: the byte goes into the mantissa of 32768; `bias` is
// -d * (32768 + what is to be taken off the byte), exact for an f16 d and a bias below 512.
constexpr float kByteMagic = 32768;
template <int I>
float scaled_byte(uint32_t word, float d, float bias) {
  return fma_f(bits_to_float(byte_perm(word, 0x47000000u, 0x7404 | (I << 4))), d, bias);
}

// What the group entries of row h (0: g, 1: g + 8) are multiplied with, by parity of the group where groups of 16 have
// different factors (frag_factor); the factor of row h itself is divided out at the end of the product.
struct FragRowScale {
  float d[2], d_bias[2];
  float min, min_bias;  // divided by 1024, as start values hold 1024 times the sums
};
// Row h's common factor, and what is left of it for odd groups.
constexpr float frag_row_factor(FragShape s, int h) { return s.unit / frag_factor(s, 0, h); }

template <FragShape S, int H>
FragRowScale row_scale(uint32_t words) {
  constexpr float kOdd = frag_factor(S, 0, 0) / frag_factor(S, 1, 0);  // the same for both rows
  constexpr float kTakenOff = S.scale == FragScale::kByte ? 128 : 0;
  FragRowScale r{};
  if constexpr (S.row_bytes() != 0) {
    const float d = low_f16(words);
    r.d[0] = d, r.d[1] = d * kOdd;
    r.d_bias[0] = -(kByteMagic + kTakenOff) * d, r.d_bias[1] = -(kByteMagic + kTakenOff) * kOdd * d;
  }
  if constexpr (S.row_bytes() == 4) {
    r.min = high_f16(words) * (1 / (1024 * frag_row_factor(S, H)));
    r.min_bias = -kByteMagic * r.min;
  }
  return r;
}

// {scale, min} of group G (in the tile): value = row factor * (scale * (factor * (code - zero)) - 1024 min).
template <FragShape S, int H, int G>
f32x2 group_scale(u32x2 words, const FragRowScale& row) {
  using enum FragScale;
  constexpr int kParity = S.group == 16 ? G % 2 : 0;
  if constexpr (S.scale == kHalf) {
    return {G == 0 ? low_f16(words.x) : high_f16(words.x), 0.0f};
  } else if constexpr (S.scale == kHalfMin) {  // the stored minimum is added
    const uint32_t w = G == 0 ? words.x : words.y;
    return {low_f16(w), high_f16(w) * (-1 / (1024 * frag_row_factor(S, H)))};
  } else if constexpr (S.scale == kByte) {  // stored with 128 added
    return {scaled_byte<G>(words.x, row.d[kParity], row.d_bias[kParity]), 0.0f};
  } else if constexpr (S.scale == kByteMin) {  // scales, then mins
    return {scaled_byte<G>(words.x, row.d[0], row.d_bias[0]), scaled_byte<G + 2>(words.x, row.min, row.min_bias)};
  } else if constexpr (S.scale == kNibbleMin) {
    return {scaled_byte<G>(words.x & 0x0f0f0f0fu, row.d[kParity], row.d_bias[kParity]),
            scaled_byte<G>((words.x >> 4) & 0x0f0f0f0fu, row.min, row.min_bias)};
  } else {
    const uint32_t e = words.x >> (8 * G) & 0xff;  // 2^(e - 128): half of it, the table holds doubles
    return {bits_to_float(e > 1 ? (e - 1) << 23 : 0x00200000u << e), 0.0f};
  }
}

}  // namespace cudabk
