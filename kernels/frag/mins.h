// What minima add to a product, a unit at a time: one product of the rows' minima with the sums of the
// columns' groups, where a multiply-add per group, row and column would do the same.
#pragma once

#include "frag/multiply.h"
#include "frag/narrow.h"

namespace cudabk {

// Groups of a unit as the depth of a product: 8 or 16. Parts of 8 take a register each of a lane.
template <FragShape S>
constexpr int min_parts() {
  return kFragDepth / S.group / 8;
}

// The minima of a lane's rows, g (h = 0) and g + 8, as first operand: register h + 2 * part holds groups
// 8 * part + 2t and the next one.
template <FragShape S>
struct UnitMins {
  static constexpr int kWords = 2 * min_parts<S>();
  uint32_t words[kWords] = {};  // as they are stored, of the tile that has these groups

  template <int Tile>
  void take(const FragTile<S>& tile) {
    constexpr int kPart = S.group == 16 ? Tile / 2 : 0;
    const bool own = S.group == 16 ? lane() % 4 / 2 == Tile % 2 : lane() % 4 == Tile;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32x2 entries = tile.groups[h];
      const uint32_t w = S.scale == FragScale::kHalfMin ? byte_perm(entries.x, entries.y, 0x7632) : entries.x;
      words[h + 2 * kPart] = own ? w : words[h + 2 * kPart];
    }
  }
  // Bytes become f16 subnormals: the integer over 2^24. Nibbles: of the tile's four groups the lane has the first two
  // for even t, the others for odd.
  uint32_t operand(int i) const {
    if constexpr (S.scale == FragScale::kHalfMin) {
      return words[i];
    } else if constexpr (S.scale == FragScale::kByteMin) {
      return byte_perm(words[i], 0, 0x4342);
    } else {
      return byte_perm(words[i], 0, lane() % 2 == 0 ? 0x4140 : 0x4342) >> 4 & 0x000f000fu;
    }
  }
};

// Of a unit in shared memory.
template <FragShape S>
UnitMins<S> shared_unit_mins(const uint8_t* unit) {
  UnitMins<S> mins;
#pragma unroll
  for (int part = 0; part < min_parts<S>(); ++part) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32x2 w = load_pair_words<S, FragMemory::kShared>(unit, 4 * part + lane() % 4, lane() / 4 + 8 * h);
      const bool upper = S.scale == FragScale::kNibbleMin && lane() % 2 == 1;  // where take() would have them
      mins.words[h + 2 * part] =
          S.scale == FragScale::kHalfMin ? byte_perm(w.x, w.y, 0x7632) : (upper ? w.x << 16 : w.x);
    }
  }
  return mins;
}

// The start values of a unit's groups as second operand: over 2^15, which fits f16, and what rounding has lost of that.
template <FragShape S>
struct GroupSums {
  uint32_t high[min_parts<S>()], low[min_parts<S>()];

  template <FragMemory Memory>
  void load(const uint8_t* unit) {
    const int col = lane() / 4;
#pragma unroll
    for (int part = 0; part < min_parts<S>(); ++part) {
      float v[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int place = column_start_place(S.group, 8, 8 * part + lane() % 4 * 2 + i, col, 0);
        v[i] = bits_to_float(read_frag<Memory, uint32_t>(unit + column_data_bytes(8) + place * 4));
      }
      set(part, v[0], v[1]);
    }
  }
  // Of 1, 2 or 4 columns, in shared memory; each in the first of the product's columns that stand for it (narrow.h),
  // the others are zero.
  template <int Cols>
  void load_narrow(const uint8_t* unit) {
    using P = Period<S, Cols>;
    const bool own = P::operand_group() == 0;
#pragma unroll
    for (int part = 0; part < min_parts<S>(); ++part) {
      const int place = column_start_place(S.group, Cols, 8 * part + lane() % 4 * 2, P::operand_column(), 0);
      const f32x2 v = *reinterpret_cast<const f32x2*>(unit + column_data_bytes(Cols) + place * 4);
      set(part, own ? v.x : 0, own ? v.y : 0);
    }
  }

 private:
  void set(int part, float first, float second) {
    constexpr float kScale = 1.0f / 32768;
    first *= kScale, second *= kScale;
    high[part] = pack_f16(first, second);
    low[part] = pack_f16(first - low_f16(high[part]), second - high_f16(high[part]));
  }
};

// What is still missing in the product of minima of row h.
template <FragShape S, int H>
float min_factor(const FragRowScale& row) {
  if constexpr (S.scale == FragScale::kHalfMin) {  // the stored minimum is added
    return -32768.0f / (1024 * frag_row_factor(S, H));
  } else {
    return row.min * (32768.0f * (1 << 24));
  }
}

template <FragShape S>
void add_mins(float (&sum)[4], const UnitMins<S>& mins, const GroupSums<S>& x, const FragRows& rows) {
  float part[4] = {};
  if constexpr (min_parts<S>() == 1) {
    const uint32_t a[2] = {mins.operand(0), mins.operand(1)};
    mma_f16_16816(part, {a[0], a[1], a[0], a[1]}, {x.high[0], x.low[0]});
  } else {
    const uint32_t a[4] = {mins.operand(0), mins.operand(1), mins.operand(2), mins.operand(3)};
    mma_f16_16816(part, a, x.high);
    mma_f16_16816(part, a, x.low);
  }
  const float factors[2] = {min_factor<S, 0>(rows.scale[0]), min_factor<S, 1>(rows.scale[1])};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum[i] = fma_f(factors[i / 2], part[i], sum[i]);
  }
}

}  // namespace cudabk
