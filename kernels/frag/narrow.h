// Frag weights times 1, 2 or 4 columns: a product has 8 columns, so each of ours takes 8 / Cols of them, one per scale
// group. Column i of the product belongs to our column i / kGroups and to group i % kGroups of a *period* of kGroups
// groups. Each lane holds the activations of its own column's group only, and multiplies every group's codes with them;
// of those products it keeps the ones whose codes are of that group. So each lane scales only the two groups whose sums
// it holds.
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

// Where the first word of this lane's operands is, in a unit, for the first period; periods follow each other.
template <FragShape S, int Cols>
int operand_place() {
  using P = Period<S, Cols>;
  return P::operand_group() * S.group / 32 * column_step_bytes(Cols) + (P::operand_column() * 4 + lane() % 4) * 16 +
         (S.group == 16 ? P::operand_group() % 2 * 8 : 0);
}
template <FragShape S, int Cols>
constexpr int period_bytes() {
  return Period<S, Cols>::kGroups * S.group / 32 * column_step_bytes(Cols);
}

// This lane's second operands of a period.
template <FragShape S, int Cols, FragMemory Memory>
void load_period_words(const uint8_t* p, uint32_t (&words)[Period<S, Cols>::kWords]) {
  if constexpr (S.group == 32) {
    const u32x4 v = read_frag<Memory, u32x4>(p);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else {
    const u32x2 v = read_frag<Memory, u32x2>(p);
    words[0] = v.x, words[1] = v.y;
  }
}

// Where the start values of a period are: of groups result_group() and the next, rows g; then rows g + 8.
template <FragShape S, int Cols>
const f32x4* period_starts(const uint8_t* unit, int period) {
  using P = Period<S, Cols>;
  const int first = column_start_place(S.group, Cols, period * P::kGroups + P::result_group(), P::result_column(), 0);
  return reinterpret_cast<const f32x4*>(unit + column_data_bytes(Cols) + first * 4);
}

// Steps [Step, Step + Count) of 16, all of one group, counted in the unit; words: of this lane's own group of the
// period.
template <DType T, int Cols, int Stride, int Step, int Count, int Words>
void multiply_steps(float (&acc)[4], const FragWords<frag_shape(T)> (&tiles)[4], const uint32_t (&words)[Words]) {
  if constexpr (Count > 0) {
    constexpr int kWord = Words == 4 ? Step % 2 * 2 : 0;
    uint32_t a[4];
    lookup_fragment<T, Step % 4, Stride>(tiles[Step / 4], a);
    mma_f16_16816(acc, a, {words[kWord], words[kWord + 1]});
    multiply_steps<T, Cols, Stride, Step + 1, Count - 1>(acc, tiles, words);
  }
}

// The codes of group Group of period Index, and of the groups after it, times every lane's own words. Of these products
// only the ones where the lane's result_group(), or the next, is the group are wanted; `picked` gets them.
template <DType T, int Cols, int Stride, int Index, int Group, int Words>
void multiply_groups(float (&picked)[4], const FragWords<frag_shape(T)> (&tiles)[4], const uint32_t (&words)[Words],
                     const float (&starts)[4]) {
  constexpr FragShape S = frag_shape(T);
  using P = Period<S, Cols>;
  if constexpr (Group < P::kGroups) {
    constexpr int kSteps = S.group / 16, kPlace = Group % 2;
    float acc[4] = {starts[0], starts[1], starts[2], starts[3]};
    multiply_steps<T, Cols, Stride, Index * P::kSteps + Group * kSteps, kSteps>(acc, tiles, words);
    const bool own = Group < 2 || P::result_group() == Group - kPlace;
    picked[kPlace] = own ? acc[kPlace] : picked[kPlace];
    picked[kPlace + 2] = own ? acc[kPlace + 2] : picked[kPlace + 2];
    multiply_groups<T, Cols, Stride, Index, Group + 1>(picked, tiles, words, starts);
  }
}

// sum[h] of row g + 8h: the period's part of our column result_column(), still spread over lanes. Stride: of the table
// (frag_shape.h). Mins: with the minima; without: mins.h adds them.
template <DType T, int Cols, int Stride, int Index, bool Mins, int Words>
void multiply_period(float (&sum)[2], const FragWords<frag_shape(T)> (&tiles)[4], const u32x2 (&entries)[2],
                     const FragRows& rows, const uint32_t (&words)[Words], f32x4 start) {
  constexpr FragShape S = frag_shape(T);
  const float starts[4] = {start.x, start.y, start.z, start.w};
  float picked[4];
  multiply_groups<T, Cols, Stride, Index, 0>(picked, tiles, words, starts);
  const f32x2 scales[2][2] = {
      // of both groups: {scale, min} of rows g and g + 8
      {group_scale<S, 0, 0>(entries[0], rows.scale[0]), group_scale<S, 1, 0>(entries[1], rows.scale[1])},
      {group_scale<S, 0, 1>(entries[0], rows.scale[0]), group_scale<S, 1, 1>(entries[1], rows.scale[1])}};
  for (int i = 0; i < 4; ++i) {
    sum[i / 2] = fma_f(scales[i % 2][i / 2].x, picked[i], sum[i / 2]);
    if constexpr (S.has_min() && Mins) {
      sum[i / 2] = fma_f(scales[i % 2][i / 2].y, starts[i], sum[i / 2]);
    }
  }
}

}  // namespace cudabk
