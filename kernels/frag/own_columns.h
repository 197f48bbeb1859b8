// Columns of frag products with 1 or 2 columns, as a lane holds them: packed by a kernel before (columns.h), or packed
// here from the op's own activations, which saves that kernel and costs every warp about 40 instructions a unit.
#pragma once

#include "common/f16_range.h"
#include "frag/narrow.h"

namespace cudabk {

// The activations of one period, of this lane's group.
template <FragShape S, int Cols>
struct PeriodColumns {
  using P = Period<S, Cols>;
  uint32_t words[P::kWords];
  f32x4 starts;

  void load(const uint8_t* unit, int period) {
    const uint8_t* p = unit + operand_place<S, Cols>() + period * period_bytes<S, Cols>();
    if constexpr (S.group == 32) {
      const u32x4 v = load_fresh(reinterpret_cast<const u32x4*>(p));
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else {
      const u32x2 v = load_fresh(reinterpret_cast<const u32x2*>(p));
      words[0] = v.x, words[1] = v.y;
    }
    starts = load_fresh(period_starts<S, Cols>(unit, period));
  }
};

template <FragShape S, int Cols>
struct NarrowColumns {
  static constexpr int kUnitBytes = column_unit_bytes(S.group, Cols);
  PeriodColumns<S, Cols> periods[Period<S, Cols>::kCount];
  float scale;  // of result_column()

  void load(const uint8_t* unit) {
    for (int p = 0; p < Period<S, Cols>::kCount; ++p) {
      periods[p].load(unit, p);
    }
    const auto* scales = reinterpret_cast<const float*>(unit + column_scale_place(S.group, Cols));
    scale = load_fresh(scales + Period<S, Cols>::result_column());
  }
  const NarrowColumns& packed() const { return *this; }
};

// The largest of the lanes that hold the same column. v: not negative.
template <int Cols>
float column_max(float v) {
  if constexpr (Cols == 1) {
    return warp_largest(v);
  } else {
    for (int mask = kWarpSize / Cols / 2; mask > 0; mask /= 2) {
      v = max_f(v, shuffle_xor(v, mask));
    }
    return v;
  }
}

// The start values of a period: sums of its groups, which a product with ones brings to the lanes that need them.
template <FragShape S, int Cols>
f32x4 sums_to_starts(const uint32_t (&words)[Period<S, Cols>::kWords]) {
  constexpr uint32_t kOne = 0x3c003c00u;
  const uint32_t ones[4] = {kOne, kOne, kOne, kOne};
  float sums[4] = {};
#pragma unroll
  for (int i = 0; i < Period<S, Cols>::kWords; i += 2) {
    mma_f16_16816(sums, ones, {words[i], words[i + 1]}, sums);
  }
  constexpr int kOdd = S.group == 16 ? 1 : 0;
  return {-frag_start_zero(S, 0, 0) * sums[0], -frag_start_zero(S, kOdd, 0) * sums[1],
          -frag_start_zero(S, 0, 1) * sums[2], -frag_start_zero(S, kOdd, 1) * sums[3]};
}

// f32, whole units, rows on multiples of 16 bytes.
template <FragShape S, int Cols>
struct OwnColumns {
  using P = Period<S, Cols>;
  static constexpr int kUnitBytes = kFragDepth * 4;
  // Four elements by one load? It wants four registers in a row, which q3_K would spill for.
  static constexpr bool kWhole = S.has_book() || S.group == 32 || Cols == 1;
  f32x2 pairs[P::kCount][P::kWords];

  // Byte of this lane's first elements in a column's unit.
  static int place() { return (P::operand_group() * S.group + lane() % 4 * 4) * 4; }

  // unit: of this lane's column, at place().
  void load(const uint8_t* unit) {
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; i += 2) {
        const uint8_t* at = unit + (p * P::kGroups * S.group + 8 * i) * 4;
        if constexpr (kWhole) {
          const f32x4 v = load_fresh(reinterpret_cast<const f32x4*>(at));
          pairs[p][i] = {v.x, v.y}, pairs[p][i + 1] = {v.z, v.w};
        } else {
          pairs[p][i] = load_fresh(reinterpret_cast<const f32x2*>(at));
          pairs[p][i + 1] = load_fresh(reinterpret_cast<const f32x2*>(at + 8));
        }
      }
    }
  }
  NarrowColumns<S, Cols> packed() const {
    float largest = 0;
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; ++i) {
        largest = max_f(largest, max_f(abs_f(pairs[p][i].x), abs_f(pairs[p][i].y)));
      }
    }
    const float factor = f16_factor(column_max<Cols>(largest));
    NarrowColumns<S, Cols> x;
    const float inverse = f16_inverse(factor);
    x.scale = Cols == 1 ? inverse : shuffle(inverse, P::result_column() * (kWarpSize / Cols));
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; ++i) {
        x.periods[p].words[i] = pack_f16(pairs[p][i].x * factor, pairs[p][i].y * factor);
      }
      x.periods[p].starts = sums_to_starts<S, Cols>(x.periods[p].words);
    }
    return x;
  }
};

// What a walk along k loads.
template <FragShape S, int Cols, bool Own>
struct WalkColumnsOf {
  using Type = NarrowColumns<S, Cols>;
};
template <FragShape S, int Cols>
struct WalkColumnsOf<S, Cols, true> {
  using Type = OwnColumns<S, Cols>;
};
template <FragShape S, int Cols, bool Own>
using WalkColumns = typename WalkColumnsOf<S, Cols, Own>::Type;

// Where the walk of batch entry `batch` begins, at unit `first`.
template <FragShape S, int Cols, bool Own>
const uint8_t* walk_columns(const FragArgs& a, int batch, int first) {
  if constexpr (Own) {
    const int column = block_y() * Cols + Period<S, Cols>::operand_column();
    return a.x + column * a.x_nb1 + batch % a.batch.b2 * a.x_nb2 + batch / a.batch.b2 * a.x_nb3 +
           first * OwnColumns<S, Cols>::kUnitBytes + OwnColumns<S, Cols>::place();
  } else {
    const int tiles = (a.n + Cols - 1) / Cols;
    return a.x +
           ((static_cast<int64_t>(batch) * tiles + block_y()) * a.units + first) * NarrowColumns<S, Cols>::kUnitBytes;
  }
}

}  // namespace cudabk
