// Frag weights as f16 values under the row's factor (factors.h), in registers, as warp-group products take them.
//
// A code is taken as the integer it is, which as f16 is a subnormal, factor * code / 2^24 (frag_factor): one fma makes
// the value of it, with no 1024 to take off first. Values are therefore small: V = 2^-24 * factor of the row * value /
// frag_row_factor, and the scales they are made with are brought below 2^15. What f16 loses at its lower end, 2^-25, is
// at most 2^-9 of the values at the row's largest scale.
#pragma once

#include "formats/frag_lookup.h"
#include "frag/multiply.h"
#include "frag/tile_args.h"

namespace cudabk {

// {x, x} as two halves.
inline uint32_t twice_f16(float x) { return pack_f16(x, x); }

// What a power of two (not the smallest ones) is to be multiplied with for 1.
inline float inverse_power(float x) { return bits_to_float(0x7f000000u - float_bits(x)); }

// ---- tables of 16 ----

// The table of frag_lookup.h with the entries themselves, / 2^24.
template <DType T>
uint32_t tile_lookup_entry(uint32_t byte) {
  constexpr FragTable kTable = frag_table(T);
  const uint32_t levels = look_up_16(kTable, byte & 0x77, ((byte >> 1) & 0x44) | 0x10);
  return f16x2_add(byte_perm(levels, 0, 0x4140), twice_f16(-128 * kSubnormalUnit));
}

// The table or book of the type, if it has one, by all Warps warps of a block; waits for all of them.
template <DType T, int Warps>
void fill_tile_lookup() {
  if constexpr (has_frag_lookup(T)) {
    for (int byte = warp(); byte < 256; byte += Warps) {
      shared_memory<uint32_t>()[byte * kWarpSize + lane()] = tile_lookup_entry<T>(static_cast<uint32_t>(byte));
    }
    block_sync();
  }
  fill_frag_book<T>(Warps * kWarpSize);
}

template <int J, int Words>
void look_up_fragment(const uint32_t (&low)[Words], uint32_t (&a)[4]) {
  const uint32_t table = shared_address(shared_memory<uint8_t>()) + lane() * 4;
  const auto entry = [&](uint32_t byte) { return shared_word(table + byte * (kWarpSize * 4)); };
  a[0] = entry(byte_perm(low[J], 0, 0x4440));
  a[2] = entry(byte_perm(low[J], 0, 0x4441));
  a[1] = entry(byte_perm(low[J], 0, 0x4442));
  a[3] = entry(byte_perm(low[J], 0, 0x4443));
}

// ---- factors of a row: for the whole product, and of one unit ----

// Row g + 8h of a product.
struct TileRow {
  float factor;
  float min_factor;    // of minima in units of 2^-24
  uint32_t halves[2];  // kHalf, kHalfMin: factors that two entries are multiplied with, one after the other
};
template <FragShape S, int H>
TileRow tile_row(float factor) {
  TileRow r{factor, factor * (1 / frag_row_factor(S, H)), {}};
  if constexpr (S.scale == FragScale::kHalf || S.scale == FragScale::kHalfMin) {  // a factor may be no f16, its root is
    const float second = S.scale == FragScale::kHalf ? factor : r.min_factor * kSubnormalUnit;
    const auto root = [](float power) {
      return bits_to_float(((float_bits(power) >> 24) + 63 + (float_bits(power) >> 23 & 1)) << 23);
    };
    const float a = root(factor), b = root(second);
    r.halves[0] = pack_f16(a, b);
    r.halves[1] = pack_f16(factor * inverse_power(a), second * inverse_power(b));
  }
  return r;
}

// What a unit's group entries are multiplied with, as pairs of halves: of even and odd groups, which have different
// factors where groups are of 16.
struct UnitRow {
  uint32_t d, min;
};
template <FragShape S>
UnitRow unit_row(uint32_t words, const TileRow& row) {
  constexpr float kOdd = frag_factor(S, 0, 0) / frag_factor(S, 1, 0);
  UnitRow r{};
  if constexpr (S.row_bytes() != 0) {
    const float d = low_f16(words) * row.factor;
    r.d = pack_f16(d, S.group == 16 ? d * kOdd : d);
  }
  if constexpr (S.row_bytes() == 4) {
    r.min = twice_f16(high_f16(words) * -row.min_factor);
  }
  return r;
}

// ---- scales ----

// Groups 2i and 2i + 1 of a row's tile.
struct PairScale {
  uint32_t scale[2], min[2];  // each twice
};

// Bytes First and First + 1 of a word as halves 1024 + byte, and as subnormals byte / 2^24.
template <int First>
uint32_t magic_bytes(uint32_t word) {
  return byte_perm(word, kF16Magic, 0x5050 | (First + 1) << 8 | First);
}
template <int First>
uint32_t subnormal_bytes(uint32_t word) {
  return byte_perm(word, 0, 0x4040 | (First + 1) << 8 | First);
}

// 2^(e - 127) of byte G; half of that for 0.
template <int G>
float power_of_byte(uint32_t word) {
  return max_f(bits_to_float((G == 0 ? word << 23 : word << 15) & 0x7f800000u), bits_to_float(0x00400000u));
}

// The minima that take the zero point off.
template <FragShape S, int H>
uint32_t zero_minima(uint32_t scales) {
  constexpr float kEven = -frag_factor(S, 0, H) * S.zero * kSubnormalUnit;
  constexpr float kOdd = -frag_factor(S, S.group == 16 ? 1 : 0, H) * S.zero * kSubnormalUnit;
  if constexpr (S.zero == static_cast<float>(static_cast<int>(S.zero))) {
    return f16x2_mul(scales, pack_f16(kEven, kOdd));
  } else {  // a multiple of 1/2
    return f16x2_mul(f16x2_mul(scales, twice_f16(0.5f)), pack_f16(2 * kEven, 2 * kOdd));
  }
}

template <FragShape S, int H, int Pair>
PairScale pair_scale(u32x2 words, const TileRow& row, const UnitRow& unit) {
  using enum FragScale;
  uint32_t scales = 0, mins = 0;
  if constexpr (S.scale == kHalfMin) {  // {scale, min} of one group a word; the minimum is added
    const uint32_t first = f16x2_mul(f16x2_mul(words.x, row.halves[0]), row.halves[1]);
    const uint32_t second = f16x2_mul(f16x2_mul(words.y, row.halves[0]), row.halves[1]);
    return {{f16x2_low(first), f16x2_low(second)}, {f16x2_high(first), f16x2_high(second)}};
  } else if constexpr (S.scale == kHalf) {
    scales = f16x2_mul(f16x2_mul(words.x, row.halves[0]), row.halves[1]);
  } else if constexpr (S.scale == kByte) {  // stored with 128 added
    scales = f16x2_mul(f16x2_add(magic_bytes<2 * Pair>(words.x), twice_f16(-1152.0f)), unit.d);
  } else if constexpr (S.scale == kByteMin) {
    scales = f16x2_mul(f16x2_add(magic_bytes<0>(words.x), twice_f16(-1024.0f)), unit.d);
    mins = f16x2_mul(subnormal_bytes<2>(words.x), unit.min);
  } else if constexpr (S.scale == kNibbleMin) {
    scales = f16x2_mul(f16x2_add(magic_bytes<2 * Pair>(words.x & 0x0f0f0f0fu), twice_f16(-1024.0f)), unit.d);
    mins = f16x2_mul(subnormal_bytes<2 * Pair>((words.x >> 4) & 0x0f0f0f0fu), unit.min);
  } else {
    const float half = row.factor * 0.5f;
    scales = pack_f16(power_of_byte<0>(words.x) * half, power_of_byte<1>(words.x) * half);
  }
  if constexpr (!S.has_min() && S.codes != FragCodes::kTable16) {
    mins = zero_minima<S, H>(scales);
  }
  return {{f16x2_low(scales), f16x2_high(scales)}, {f16x2_low(mins), f16x2_high(mins)}};
}

// ---- values ----

// Fragment of step J (0 .. 3) of a tile: scale * code + min. above, below: rows g and g + 8; Group: of the pair.
template <DType T, int J, int Group>
void value_fragment(const FragWords<frag_shape(T)>& words, const PairScale& above, const PairScale& below,
                    uint32_t (&a)[4]) {
  if constexpr (has_frag_lookup(T)) {
    look_up_fragment<J>(words.low, a);
  } else {
    frag_fragment<T, J, 0>(words, a);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const PairScale& s = i % 2 == 0 ? above : below;
    a[i] = has_frag_lookup(T) ? f16x2_mul(a[i], s.scale[Group]) : f16x2_fma(a[i], s.scale[Group], s.min[Group]);
  }
}

// The rows g and g + 8 of a warp's strip.
struct TileRows {
  TileRow product[2];
  UnitRow unit[2];
};

template <DType T>
void value_fragments(const FragTile<frag_shape(T)>& tile, const TileRows& rows, uint32_t (&a)[4][4]) {
  constexpr FragShape S = frag_shape(T);
  constexpr bool kPairs = S.group == 16;  // two pairs of groups
  const PairScale above = pair_scale<S, 0, 0>(tile.groups[0], rows.product[0], rows.unit[0]);
  const PairScale below = pair_scale<S, 1, 0>(tile.groups[1], rows.product[1], rows.unit[1]);
  value_fragment<T, 0, 0>(tile.words, above, below, a[0]);
  value_fragment<T, 1, kPairs ? 1 : 0>(tile.words, above, below, a[1]);
  if constexpr (kPairs) {
    const PairScale above1 = pair_scale<S, 0, 1>(tile.groups[0], rows.product[0], rows.unit[0]);
    const PairScale below1 = pair_scale<S, 1, 1>(tile.groups[1], rows.product[1], rows.unit[1]);
    value_fragment<T, 2, 0>(tile.words, above1, below1, a[2]);
    value_fragment<T, 3, 1>(tile.words, above1, below1, a[3]);
  } else {
    value_fragment<T, 2, 1>(tile.words, above, below, a[2]);
    value_fragment<T, 3, 1>(tile.words, above, below, a[3]);
  }
}

}  // namespace cudabk
