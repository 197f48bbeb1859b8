// Frag weights times 1, 2 or 4 columns. A block computes a strip; its warps take every Warps-th unit of k, each through
// its own ring (frag/ring.h), and are added at the end.
#pragma once

#include "frag/narrow.h"
#include "frag/ring.h"
#include "frag/store.h"
#include "mmvq/vector.h"

namespace cudabk {

// Period Index of the unit in `weights`, and those after it.
template <DType T, int Cols, int Index = 0>
void multiply_periods(float (&sum)[2], const uint8_t* weights, const uint8_t* columns, const FragRows& rows,
                      PeriodColumns<frag_shape(T), Cols>& x) {
  constexpr FragShape S = frag_shape(T);
  using P = Period<S, Cols>;
  if constexpr (Index < P::kCount) {
    x.load(columns, Index);
    u32x2 entries[2];
    for (int h = 0; h < 2; ++h) {
      entries[h] = load_pair_words<S, FragMemory::kShared>(weights, (Index * P::kGroups + P::result_group()) / 2,
                                                           lane() / 4 + 8 * h);
    }
    multiply_period<T, Cols, Index>(sum, weights, entries, rows, x, period_starts<S, Cols>(columns, Index));
    multiply_periods<T, Cols, Index + 1>(sum, weights, columns, rows, x);
  }
}

template <DType T, int Cols>
void multiply_unit(float (&sum)[2], const uint8_t* weights, const uint8_t* columns,
                   PeriodColumns<frag_shape(T), Cols>& x) {
  constexpr FragShape S = frag_shape(T);
  const FragRows rows = frag_rows<S>(load_row_words<S, FragMemory::kShared>(weights, lane() / 4),
                                     load_row_words<S, FragMemory::kShared>(weights, lane() / 4 + 8));
  float part[2] = {0, 0};
  multiply_periods<T, Cols>(part, weights, columns, rows, x);
  const float scale =
      reinterpret_cast<const float*>(columns + column_scale_place(S.group, Cols))[Period<S, Cols>::result_column()];
  sum[0] = fma_f(scale, part[0], sum[0]);
  sum[1] = fma_f(scale, part[1], sum[1]);
}

// grid: x = ceil(m / 16), y = ceil(n / Cols), z = batch (looped).
template <DType T, int Cols, int Warps, int Stages>
KERNEL_MIN_BLOCKS(frag_vector, Warps* kWarpSize, 2)(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kUnit = S.unit_bytes(), kColumnUnit = column_unit_bytes(S.group, Cols);
  UnitRing<kUnit, kColumnUnit, 1, Stages> ring(shared_memory<uint8_t>() + frag_vector_rings_place(T, Warps), Warps);
  PeriodColumns<S, Cols> x;
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const int tiles = (a.n + Cols - 1) / Cols;
    UnitWalk walk = unit_walk<Warps>(a, batch, kUnit, kColumnUnit, tiles, block_y());
    int left = walk.left;
    ring.begin_weights(walk);
    fill_frag_lookup<T, Warps>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    ring.begin(walk);
    float sum[2] = {0, 0};
    for (; left > 0; --left) {
      const uint8_t* slot = ring.wait();
      multiply_unit<T, Cols>(sum, slot, slot + kUnit, x);
      ring.next(walk);
    }
    finish_narrow<T, Cols, Warps>(sum, a, batch);
  }
}

}  // namespace cudabk
