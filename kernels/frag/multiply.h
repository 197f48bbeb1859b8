// Arithmetic of frag products: one step of 32 elements of k of a strip, times 8 columns.
#pragma once

#include "formats/frag_lookup.h"
#include "frag/args.h"

namespace cudabk {

// What a lane holds of one tile of a strip: codes, and the group entries of rows g and g + 8.
template <FragShape S>
struct FragTile {
  FragWords<S> words;
  u32x2 groups[2];

  template <FragMemory Memory>
  void load(const uint8_t* unit, int tile) {
    words = load_frag_words<S, Memory>(unit, tile);
    groups[0] = load_group_words<S, Memory>(unit, tile, lane() / 4);
    groups[1] = load_group_words<S, Memory>(unit, tile, lane() / 4 + 8);
  }
};

struct FragRows {
  FragRowScale scale[2];  // of rows g and g + 8
};
template <FragShape S>
FragRows frag_rows(uint32_t row, uint32_t row_below) {
  return {{row_scale<S, 0>(row), row_scale<S, 1>(row_below)}};
}

template <FragShape S>
FragRows shared_frag_rows(const uint8_t* unit) {
  return frag_rows<S>(load_row_words<S, FragMemory::kShared>(unit, lane() / 4),
                      load_row_words<S, FragMemory::kShared>(unit, lane() / 4 + 8));
}

struct FragScales {
  float of[2];  // of rows g and g + 8
};
template <FragShape S, int G>
FragScales frag_scales(const FragTile<S>& tile, const FragRows& rows) {
  return {
      {group_scale<S, 0, G>(tile.groups[0], rows.scale[0]).x, group_scale<S, 1, G>(tile.groups[1], rows.scale[1]).x}};
}

inline void add_scaled(float (&sum)[4], const float (&part)[4], const FragScales& s) {
  for (int i = 0; i < 4; ++i) {
    sum[i] = fma_f(s.of[i / 2], part[i], sum[i]);
  }
}

// The step's second operand of one column tile: registers of both steps of 16, and the start values of its groups.
template <FragShape S>
struct ColumnStep {
  static constexpr int kGroups = 32 / S.group;
  uint32_t b[2][2];
  float start[kGroups][4];

  void set(u32x4 words, const f32x4 (&starts)[kGroups]) {
    b[0][0] = words.x, b[0][1] = words.y, b[1][0] = words.z, b[1][1] = words.w;
    for (int i = 0; i < kGroups; ++i) {
      start[i][0] = starts[i].x, start[i][1] = starts[i].y, start[i][2] = starts[i].z, start[i][3] = starts[i].w;
    }
  }
};

// Step `step` of the 8 of a unit of activations.
template <FragShape S, FragMemory Memory>
void load_column_step(const uint8_t* unit, int step, ColumnStep<S>& x) {
  constexpr int kGroups = 32 / S.group;
  const auto* all_starts = reinterpret_cast<const f32x4*>(unit + column_data_bytes(8));
  const auto* words = reinterpret_cast<const u32x4*>(unit + step * column_step_bytes(8));
  f32x4 starts[kGroups] = {};
  if constexpr (frag_has_starts(S)) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      starts[i] = read_frag<Memory, f32x4>(
          reinterpret_cast<const uint8_t*>(all_starts + (step * kGroups + i) * 4 + lane() % 4));
    }
  }
  x.set(read_frag<Memory, u32x4>(reinterpret_cast<const uint8_t*>(words + lane())), starts);
}

// Step of 32 number Step (0, 1) of a tile, decoded.
template <DType T, int Step>
struct FragStep {
  static constexpr FragShape S = frag_shape(T);
  static constexpr int kGroups = 32 / S.group;
  uint32_t a[2][4];
  FragScales scales[kGroups];

  void decode(const FragTile<S>& tile, const FragRows& rows) {
    lookup_fragment<T, 2 * Step>(tile.words, a[0]);
    lookup_fragment<T, 2 * Step + 1>(tile.words, a[1]);
    scales[0] = frag_scales<S, Step * kGroups>(tile, rows);
    if constexpr (kGroups == 2) {
      scales[1] = frag_scales<S, 2 * Step + 1>(tile, rows);
    }
  }
};

// The step times one column tile, without minima (mins.h).
template <DType T, int Step>
void multiply_step(float (&sum)[4], const FragStep<T, Step>& step, const ColumnStep<frag_shape(T)>& x) {
  constexpr FragShape S = frag_shape(T);
  float part[2][4];
  mma_f16_16816(part[0], step.a[0], x.b[0], x.start[0]);
  if constexpr (S.group == 16) {
    mma_f16_16816(part[1], step.a[1], x.b[1], x.start[1]);
    add_scaled(sum, part[0], step.scales[0]);
    add_scaled(sum, part[1], step.scales[1]);
  } else {
    mma_f16_16816(part[1], step.a[1], x.b[1], part[0]);
    add_scaled(sum, part[1], step.scales[0]);
  }
}

}  // namespace cudabk
