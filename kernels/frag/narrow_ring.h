// Frag weights times 1, 2 or 4 columns, through rings. A block computes Strips strips; each of its warps takes every
// Warps-th unit of k of all of them, through its own ring (frag/ring.h), so that activations are fetched once for the
// strips. The warps are added at the end.
#pragma once

#include "frag/mins.h"
#include "frag/narrow.h"
#include "frag/ring.h"
#include "frag/store.h"
#include "mmvq/vector.h"

namespace cudabk {

// Period Index of the units in `weights`, and those after it. sum: [strip][row half].
template <DType T, int Cols, int Strips, int Index = 0>
void multiply_ring_periods(float (&sum)[Strips][2], const uint8_t* weights, const uint8_t* columns,
                           const FragRows (&rows)[Strips], int place) {
  constexpr FragShape S = frag_shape(T);
  using P = Period<S, Cols>;
  if constexpr (Index < P::kCount) {
    uint32_t words[P::kWords];
    load_period_words<S, Cols, FragMemory::kShared>(columns + place + Index * period_bytes<S, Cols>(), words);
    f32x4 starts{0, 0, 0, 0};
    if constexpr (frag_has_starts(S)) {
      starts = *period_starts<S, Cols>(columns, Index);
    }
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      const uint8_t* unit = weights + strip * S.unit_bytes();
      FragWords<S> tiles[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        tiles[i] = load_frag_words<S, FragMemory::kShared>(unit, i);
      }
      u32x2 entries[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        entries[h] = load_pair_words<S, FragMemory::kShared>(unit, (Index * P::kGroups + P::result_group()) / 2,
                                                             lane() / 4 + 8 * h);
      }
      multiply_period<T, Cols, 128, Index, false>(sum[strip], tiles, entries, rows[strip], words, starts);
    }
    multiply_ring_periods<T, Cols, Strips, Index + 1>(sum, weights, columns, rows, place);
  }
}

template <DType T, int Cols, int Strips>
void multiply_ring_unit(float (&sum)[Strips][2], const uint8_t* weights, const uint8_t* columns, int place) {
  constexpr FragShape S = frag_shape(T);
  FragRows rows[Strips];
#pragma unroll
  for (int strip = 0; strip < Strips; ++strip) {
    rows[strip] = shared_frag_rows<S>(weights + strip * S.unit_bytes());
  }
  float part[Strips][2] = {};
  multiply_ring_periods<T, Cols, Strips>(part, weights, columns, rows, place);
  if constexpr (S.has_min()) {
    GroupSums<S> x;
    x.template load_narrow<Cols>(columns);
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      float mins[4] = {};
      add_mins<S>(mins, shared_unit_mins<S>(weights + strip * S.unit_bytes()), x, rows[strip]);
      part[strip][0] += mins[0];
      part[strip][1] += mins[2];
    }
  }
  const float scale =
      reinterpret_cast<const float*>(columns + column_scale_place(S.group, Cols))[Period<S, Cols>::result_column()];
#pragma unroll
  for (int strip = 0; strip < Strips; ++strip) {
    sum[strip][0] = fma_f(scale, part[strip][0], sum[strip][0]);
    sum[strip][1] = fma_f(scale, part[strip][1], sum[strip][1]);
  }
}

// grid: x = ceil(m / (16 * Strips)), y = ceil(n / Cols), z = batch (looped). Two strips of an SM at a time.
template <DType T, int Cols, int Strips, int Warps, int Stages>
KERNEL_MIN_BLOCKS(frag_ring, Warps* kWarpSize, 2 / Strips)(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kUnit = S.unit_bytes(), kColumnUnit = column_unit_bytes(S.group, Cols);
  UnitRing<kUnit, kColumnUnit, Strips, 1, Stages> ring(
      shared_memory<uint8_t>() + frag_narrow_rings_place(T, Strips, Warps), Warps);
  auto* slots = sum_slots<f32x2>(frag_lookup_bytes(T));
  const int place = operand_place<S, Cols>();
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const int tiles = (a.n + Cols - 1) / Cols;
    UnitWalk walk = unit_walk<Strips, Warps>(a, batch, kUnit, kColumnUnit, tiles, block_y());
    int left = walk.left;
    ring.begin_weights(walk);
    fill_frag_lookup<T, Warps>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    ring.begin(walk);
    float sum[Strips][2] = {};
    for (; left > 0; --left) {
      const uint8_t* slot = ring.wait();
      multiply_ring_unit<T, Cols, Strips>(sum, slot, slot + Strips * kUnit, place);
      ring.next(walk);
    }
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      leave_narrow<Strips>(slots, sum[strip], warp(), strip);
    }
    finish_narrow<T, Cols, Strips, Warps>(slots, a, batch);
  }
}

}  // namespace cudabk
