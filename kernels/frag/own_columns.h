// Columns of frag products with 1 or 2 columns, as a lane holds them: packed by a kernel before (columns.h), or packed
// here from the op's own activations, which saves that kernel and costs every warp about 40 instructions a unit.
#pragma once

#include "common/f16_range.h"
#include "frag/narrow.h"

namespace cudabk {

// -v, of 1024 to 2047, in both halves of a register.
constexpr uint32_t minus_f16(float v) { return (0xe400u + static_cast<uint32_t>(v - 1024)) * 0x00010001u; }

// The start values of a period: sums of its groups, times what is to be taken off a code. A product brings them to the
// lanes that need them.
template <FragShape S, int Cols>
f32x4 sums_to_starts(const uint32_t (&words)[Period<S, Cols>::kWords]) {
  constexpr int kOdd = S.group == 16 ? 1 : 0;
  constexpr float kEven0 = frag_start_zero(S, 0, 0), kOdd0 = frag_start_zero(S, kOdd, 0);
  constexpr float kEven1 = frag_start_zero(S, 0, 1), kOdd1 = frag_start_zero(S, kOdd, 1);
  // In one product where neighbouring groups take off the same, an f16.
  constexpr bool kSame = kEven0 == kOdd0 && kEven1 == kOdd1 && kEven0 == static_cast<float>(static_cast<int>(kEven0));
  constexpr uint32_t kAbove = kSame ? minus_f16(kEven0) : 0x3c003c00u, kBelow = kSame ? minus_f16(kEven1) : 0x3c003c00u;
  const uint32_t factors[4] = {kAbove, kBelow, kAbove, kBelow};
  float sums[4] = {};
#pragma unroll
  for (int i = 0; i < Period<S, Cols>::kWords; i += 2) {
    mma_f16_16816(sums, factors, {words[i], words[i + 1]}, sums);
  }
  if constexpr (kSame) {
    return {sums[0], sums[1], sums[2], sums[3]};
  } else {
    return {-kEven0 * sums[0], -kOdd0 * sums[1], -kEven1 * sums[2], -kOdd1 * sums[3]};
  }
}

// The activations of a unit that this lane holds: of its group of every period.
template <FragShape S, int Cols>
struct UnitColumns {
  using P = Period<S, Cols>;
  uint32_t words[P::kCount][P::kWords];
  float scale;  // of result_column()

  // Start values are made where they are used: held, they would take registers.
  f32x4 starts(int period) const {
    if constexpr (frag_has_starts(S)) {
      return sums_to_starts<S, Cols>(words[period]);
    } else {
      return {0, 0, 0, 0};
    }
  }
};

// Packed before.
template <FragShape S, int Cols>
struct NarrowColumns {
  using P = Period<S, Cols>;
  static constexpr int kUnitBytes = column_unit_bytes(S.group, Cols);
  UnitColumns<S, Cols> held;

  void load(const uint8_t* unit) {
    for (int p = 0; p < P::kCount; ++p) {
      load_period_words<S, Cols, FragMemory::kWritten>(unit + operand_place<S, Cols>() + p * period_bytes<S, Cols>(),
                                                       held.words[p]);
    }
    const auto* scales = reinterpret_cast<const float*>(unit + column_scale_place(S.group, Cols));
    held.scale = load_fresh(scales + P::result_column());
  }
  const UnitColumns<S, Cols>& packed() const { return held; }
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

// f32, whole units, rows on multiples of 16 bytes.
template <FragShape S, int Cols>
struct OwnColumns {
  using P = Period<S, Cols>;
  static constexpr int kUnitBytes = kFragDepth * 4;
  f32x2 pairs[P::kCount][P::kWords];

  // Byte of this lane's first elements in a column's unit.
  static int place() { return (P::operand_group() * S.group + lane() % 4 * 4) * 4; }

  // unit: of this lane's column, at place().
  void load(const uint8_t* unit) {
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; i += 2) {
        const f32x4 v = load_fresh(reinterpret_cast<const f32x4*>(unit + (p * P::kGroups * S.group + 8 * i) * 4));
        pairs[p][i] = {v.x, v.y}, pairs[p][i + 1] = {v.z, v.w};
      }
    }
  }
  UnitColumns<S, Cols> packed() const {
    float largest = 0;
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; ++i) {
        largest = max_f(largest, max_f(abs_f(pairs[p][i].x), abs_f(pairs[p][i].y)));
      }
    }
    const float factor = f16_factor(column_max<Cols>(largest));
    UnitColumns<S, Cols> x;
    const float inverse = f16_inverse(factor);
    x.scale = Cols == 1 ? inverse : shuffle(inverse, P::result_column() * (kWarpSize / Cols));
#pragma unroll
    for (int p = 0; p < P::kCount; ++p) {
#pragma unroll
      for (int i = 0; i < P::kWords; ++i) {
        x.words[p][i] = pack_f16(pairs[p][i].x * factor, pairs[p][i].y * factor);
      }
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
