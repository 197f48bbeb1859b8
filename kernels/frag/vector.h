// Frag weights times 1, 2 or 4 columns. A block computes Strips strips; the Warps warps of a strip take every Warps-th
// unit of k, read it straight into registers one unit ahead, and are added at the end. Activations come from global
// memory; warps of different strips read the same ones at the same time, the second from L1.
#pragma once

#include "frag/narrow.h"
#include "frag/store.h"
#include "mmvq/vector.h"

namespace cudabk {

// A unit of weights in a lane's registers.
template <FragShape S, int Cols>
struct NarrowUnit {
  using P = Period<S, Cols>;
  FragWords<S> tiles[4];
  u32x2 entries[P::kCount][2];
  uint32_t rows[2];

  void load(const uint8_t* unit) {
    constexpr FragMemory kMemory = FragMemory::kConstant;
    for (int i = 0; i < 4; ++i) {
      tiles[i] = load_frag_words<S, kMemory>(unit, i);
    }
    for (int h = 0; h < 2; ++h) {
      const int row = lane() / 4 + 8 * h;
      for (int p = 0; p < P::kCount; ++p) {
        entries[p][h] = load_pair_words<S, kMemory>(unit, (p * P::kGroups + P::result_group()) / 2, row);
      }
      rows[h] = load_row_words<S, kMemory>(unit, row);
    }
  }
};

template <FragShape S, int Cols>
struct NarrowColumns {
  PeriodColumns<S, Cols> periods[Period<S, Cols>::kCount];
  float scale;

  void load(const uint8_t* unit) {
    for (int p = 0; p < Period<S, Cols>::kCount; ++p) {
      periods[p].load(unit, p);
    }
    const auto* scales = reinterpret_cast<const float*>(unit + column_scale_place(S.group, Cols));
    scale = load_fresh(scales + Period<S, Cols>::result_column());
  }
};

template <DType T, int Cols, int Index = 0>
void multiply_periods(float (&sum)[2], const NarrowUnit<frag_shape(T), Cols>& w, const FragRows& rows,
                      const NarrowColumns<frag_shape(T), Cols>& x, const uint32_t (&masks)[8 / Cols]) {
  if constexpr (Index < Period<frag_shape(T), Cols>::kCount) {
    multiply_period<T, Cols, Index>(sum, w.tiles, w.entries[Index], rows, x.periods[Index], masks);
    multiply_periods<T, Cols, Index + 1>(sum, w, rows, x, masks);
  }
}

template <DType T, int Cols>
void multiply_unit(float (&sum)[2], const NarrowUnit<frag_shape(T), Cols>& w,
                   const NarrowColumns<frag_shape(T), Cols>& x, const uint32_t (&masks)[8 / Cols]) {
  float part[2] = {0, 0};
  multiply_periods<T, Cols>(part, w, frag_rows<frag_shape(T)>(w.rows[0], w.rows[1]), x, masks);
  sum[0] = fma_f(x.scale, part[0], sum[0]);
  sum[1] = fma_f(x.scale, part[1], sum[1]);
}

// Registers for the activations of the next unit too?
template <FragShape S, int Cols>
constexpr bool columns_come_ahead() {
  return Cols == 1 || (Cols == 2 && S.group == 32 && S.low_bits + S.high_bits <= (kArch >= 900 ? 5 : 4));
}

// grid: x = ceil(m / (16 * Strips)), y = ceil(n / Cols), z = batch (looped).
template <DType T, int Cols, int Warps, int Strips>
KERNEL_MIN_BLOCKS(frag_vector, Warps* Strips* kWarpSize, 2 / Strips)(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kUnit = S.unit_bytes(), kColumnUnit = column_unit_bytes(S.group, Cols);
  constexpr bool kAhead = columns_come_ahead<S, Cols>();
  const int tiles = (a.n + Cols - 1) / Cols, first = warp() / Strips;
  uint32_t masks[8 / Cols];  // of the groups of a period: where this lane is the operand's column
  for (int i = 0; i < 8 / Cols; ++i) {
    masks[i] = Period<S, Cols>::operand_group() == i ? ~0u : 0;
  }
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3) +
                             (static_cast<int64_t>(read_strip<Strips>(a)) * a.units + first) * kUnit;
    const uint8_t* columns = a.x + ((static_cast<int64_t>(batch) * tiles + block_y()) * a.units + first) * kColumnUnit;
    NarrowUnit<S, Cols> current, next;
    NarrowColumns<S, Cols> x, next_x;
    if (first < a.units) {
      current.load(weights);
    }
    fill_frag_lookup<T, Warps * Strips>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
    float sum[2] = {0, 0};
    if (kAhead && first < a.units) {
      x.load(columns);
    }
    int unit = first;
    for (; unit + Warps < a.units; unit += Warps) {
      if constexpr (!kAhead) {
        x.load(columns);
      }
      weights += Warps * kUnit;
      columns += Warps * kColumnUnit;
      next.load(weights);
      if constexpr (kAhead) {
        next_x.load(columns);
      }
      multiply_unit<T, Cols>(sum, current, x, masks);
      current = next;
      if constexpr (kAhead) {
        x = next_x;
      }
    }
    if (unit < a.units) {
      if constexpr (!kAhead) {
        x.load(columns);
      }
      multiply_unit<T, Cols>(sum, current, x, masks);
    }
    finish_narrow<T, Cols, Warps, Strips>(sum, a, batch);
  }
}

}  // namespace cudabk
