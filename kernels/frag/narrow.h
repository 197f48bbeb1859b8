// Frag weights times 1, 2 or 4 columns: a product has 8 columns, so each of ours takes 8 / Cols of them, one per scale
// group. Column i of the product belongs to our column i / kGroups and to group i % kGroups of a *period* of kGroups
// groups; its activations are nothing outside that group. So codes accumulate over the whole period, and each lane
// scales only the two groups whose sums it holds.
#pragma once

#include "formats/frag_lookup.h"
#include "frag/multiply.h"
#include "platform/platform.h"

namespace cudabk {

template <FragShape S, int Cols>
struct Period {
  static constexpr int kGroups = 8 / Cols, kSteps = kGroups * S.group / 16;  // steps of 16
  static constexpr int kCount = kFragDepth / S.group / kGroups;              // in a unit
  static constexpr int kWords = S.group / 8;  // registers of activations: 2 per step of 16

  // This lane as a column of the second operand, and as the holder of columns 2t and 2t + 1 of the result.
  static int operand_column() { return lane() / 4 / kGroups; }
  static int operand_group() { return lane() / 4 % kGroups; }
  static int result_column() { return lane() % 4 * 2 / kGroups; }
  static int result_group() { return lane() % 4 * 2 % kGroups; }
};

// The activations of one period as second operands, one per group: a lane holds those of its own group; its registers
// for the other groups are zero from the beginning and stay so.
template <FragShape S, int Cols>
struct PeriodColumns {
  using P = Period<S, Cols>;
  uint32_t words[P::kGroups][P::kWords] = {};
  int place = P::operand_group() * S.group / 32 * column_step_bytes(Cols) +  // in the unit, of the first period
              (P::operand_column() * 4 + lane() % 4) * 16 + (S.group == 16 ? P::operand_group() % 2 * 8 : 0);

  void load(const uint8_t* unit, int period) {
    const uint8_t* p = unit + place + period * P::kGroups * S.group / 32 * column_step_bytes(Cols);
#pragma unroll
    for (int i = 0; i < P::kGroups; ++i) {
      if (P::operand_group() == i) {
        if constexpr (S.group == 32) {
          const u32x4 v = *reinterpret_cast<const u32x4*>(p);
          words[i][0] = v.x, words[i][1] = v.y, words[i][2] = v.z, words[i][3] = v.w;
        } else {
          const u32x2 v = *reinterpret_cast<const u32x2*>(p);
          words[i][0] = v.x, words[i][1] = v.y;
        }
      }
    }
  }
};

// The start values of a period: of groups result_group() and the next, rows g; then rows g + 8.
template <FragShape S, int Cols>
f32x4 period_starts(const uint8_t* unit, int period) {
  using P = Period<S, Cols>;
  const int first = column_start_place(S.group, Cols, period * P::kGroups + P::result_group(), P::result_column(), 0);
  return *reinterpret_cast<const f32x4*>(unit + column_data_bytes(Cols) + first * 4);
}

// Steps [Step, Step + Count) of 16, all of one period, counted in the unit in `weights`; words: of Step's tile.
template <DType T, int Cols, int Step, int Count>
void multiply_steps(float (&acc)[2][4], const uint8_t* weights, FragWords<frag_shape(T)> words,
                    const PeriodColumns<frag_shape(T), Cols>& x) {
  if constexpr (Count > 0) {
    constexpr FragShape S = frag_shape(T);
    if constexpr (Step % 4 == 0) {
      words = load_frag_words<S, FragMemory::kShared>(weights, Step / 4);
    }
    constexpr int kGroup = Step * 16 / S.group % (8 / Cols), kWord = S.group == 32 ? Step % 2 * 2 : 0;
    uint32_t a[4];
    lookup_fragment<T, Step % 4>(words, a);
    const uint32_t b[2] = {x.words[kGroup][kWord], x.words[kGroup][kWord + 1]};
    mma_f16_16816(acc[Step % 2], a, b, acc[Step % 2]);
    multiply_steps<T, Cols, Step + 1, Count - 1>(acc, weights, words, x);
  }
}

// sum[h] of row g + 8h: the period's part of our column result_column(), still spread over lanes.
template <DType T, int Cols, int Index>
void multiply_period(float (&sum)[2], const uint8_t* weights, const u32x2 (&entries)[2],
                     const FragRows& rows, const PeriodColumns<frag_shape(T), Cols>& x, f32x4 start) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kSteps = Period<S, Cols>::kSteps;
  const float starts[4] = {start.x, start.y, start.z, start.w};
  float acc[2][4] = {{start.x, start.y, start.z, start.w}, {0, 0, 0, 0}};
  FragWords<S> words;
  if constexpr (Index * kSteps % 4 != 0) {  // the period begins inside a tile
    words = load_frag_words<S, FragMemory::kShared>(weights, Index * kSteps / 4);
  }
  multiply_steps<T, Cols, Index * kSteps, kSteps>(acc, weights, words, x);
  const FragScales scales[2] = {
      {{group_scale<S, 0, 0>(entries[0], rows.scale[0]), group_scale<S, 1, 0>(entries[1], rows.scale[1])}},
      {{group_scale<S, 0, 1>(entries[0], rows.scale[0]), group_scale<S, 1, 1>(entries[1], rows.scale[1])}}};
  for (int i = 0; i < 4; ++i) {
    sum[i / 2] = fma_f(scales[i % 2].of[i / 2].x, acc[0][i] + acc[1][i], sum[i / 2]);
    if constexpr (S.has_min()) {
      sum[i / 2] = fma_f(scales[i % 2].of[i / 2].y, starts[i], sum[i / 2]);
    }
  }
}

}  // namespace cudabk
