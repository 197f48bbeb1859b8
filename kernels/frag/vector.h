// Frag weights times 1 or 2 columns. A block computes Strips strips; the Warps warps of a strip take every Warps-th
// unit of k, read it straight into registers one unit ahead, and are added at the end. Activations come from global
// memory, packed by a kernel before or as the op has them; warps of different strips read the same ones at the same
// time, the second from L1.
#pragma once

#include "frag/narrow.h"
#include "frag/own_columns.h"
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
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      tiles[i] = load_frag_words<S, kMemory>(unit, i);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = lane() / 4 + 8 * h;
#pragma unroll
      for (int p = 0; p < P::kCount; ++p) {
        entries[p][h] = load_pair_words<S, kMemory>(unit, (p * P::kGroups + P::result_group()) / 2, row);
      }
      rows[h] = load_row_words<S, kMemory>(unit, row);
    }
  }
};

inline constexpr int kNarrowLookupStride = frag_wide_lookup_stride(kArch / 10);

template <DType T, int Cols, int Index = 0, class X>
void multiply_periods(float (&sum)[2], const NarrowUnit<frag_shape(T), Cols>& w, const FragRows& rows, const X& x) {
  if constexpr (Index < Period<frag_shape(T), Cols>::kCount) {
    multiply_period<T, Cols, kNarrowLookupStride, Index, true>(sum, w.tiles, w.entries[Index], rows, x.words[Index],
                                                               x.starts(Index));
    multiply_periods<T, Cols, Index + 1>(sum, w, rows, x);
  }
}

template <DType T, int Cols, class X>
void multiply_unit(float (&sum)[2], const NarrowUnit<frag_shape(T), Cols>& w, const X& x) {
  float part[2] = {0, 0};
  multiply_periods<T, Cols>(part, w, frag_rows<frag_shape(T)>(w.rows[0], w.rows[1]), x);
  sum[0] = fma_f(x.scale, part[0], sum[0]);
  sum[1] = fma_f(x.scale, part[1], sum[1]);
}

// Registers for the activations of the next unit too?
template <FragShape S, int Cols, bool Own>
constexpr bool columns_come_ahead() {
  return Own || Cols == 1 || (S.group == 32 && S.all_words() <= (kArch >= 900 ? 5 : 4));
}

// A warp's walk along k: two units in registers, one multiplied while the other comes. Unrolled by two, a unit is asked
// for before the one that is multiplied has come; else its registers are moved, which waits for it. More under way is
// better where a warp has few units, worse where it has many.
template <DType T, int Cols, int Step, bool Own>
struct NarrowWalk {
  static constexpr FragShape S = frag_shape(T);
  static constexpr bool kAhead = columns_come_ahead<S, Cols, Own>();
  using Columns = WalkColumns<S, Cols, Own>;
  static constexpr int kHeld = kAhead && !Own ? 2 : 1;  // packing makes room for what comes next
  const uint8_t *weights, *columns;                     // of the newest unit
  int left;                                             // units that have not come
  NarrowUnit<S, Cols> units[2];
  Columns x[kHeld];

  void begin_weights() {
    if (left > 0) {
      units[0].load(weights);
    }
  }
  void begin_columns() {
    if (left > 0) {
      if constexpr (kAhead) {
        x[0].load(columns);
      }
      --left;
    }
  }
  // Multiplies unit Now; false: it was the last one.
  template <int Now>
  bool step(float (&sum)[2]) {
    if constexpr (!kAhead) {
      x[0].load(columns);
    }
    const auto& now = x[Now % kHeld].packed();
    const bool more = left > 0;
    if (more) {
      load_next(units[1 - Now], x[(1 - Now) % kHeld]);
      --left;
    }
    multiply_unit<T, Cols>(sum, units[Now], now);
    return more;
  }
  void multiply_unrolled(float (&sum)[2]) {
    while (step<0>(sum) && step<1>(sum)) {
    }
  }
  void multiply_moving(float (&sum)[2]) {
    for (; left > 0; --left) {
      if constexpr (!kAhead) {
        x[0].load(columns);
      }
      const auto& now = x[0].packed();
      load_next(units[1], x[kHeld - 1]);
      multiply_unit<T, Cols>(sum, units[0], now);
      units[0] = units[1];
      if constexpr (kHeld == 2) {
        x[0] = x[1];
      }
    }
    if constexpr (!kAhead) {
      x[0].load(columns);
    }
    multiply_unit<T, Cols>(sum, units[0], x[0].packed());
  }

 private:
  void load_next(NarrowUnit<S, Cols>& unit, Columns& next) {
    weights += Step * S.unit_bytes();
    columns += Step * Columns::kUnitBytes;
    unit.load(weights);
    if constexpr (kAhead) {
      next.load(columns);
    }
  }
};

// grid: x = ceil(m / (16 * Strips)), y = ceil(n / Cols), z = batch (looped).
// Unroll: 1 or 2. Own: activations are not packed (n = Cols, k of whole units, rows on multiples of 16 bytes).
template <DType T, int Cols, int Warps, int Strips, int Unroll, bool Own>
KERNEL_MIN_BLOCKS(frag_vector, Warps* Strips* kWarpSize, 2 / Strips)(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  auto* slots = sum_slots<f32x2>(frag_lookup_bytes(T, kNarrowLookupStride));
  const int strips = (a.m + kFragRows - 1) / kFragRows;
  const int first = warp() / Strips, own = block_x() * Strips + warp() % Strips;
  const int strip = own < strips ? own : strips - 1;  // past the last: read as the last one, not stored
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    NarrowWalk<T, Cols, Warps, Own> walk;
    walk.weights = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3) +
                   (static_cast<int64_t>(strip) * a.units + first) * S.unit_bytes();
    walk.columns = walk_columns<S, Cols, Own>(a, batch, first);
    walk.left = (a.units - first + Warps - 1) / Warps;
    walk.begin_weights();
    fill_frag_lookup<T, Warps * Strips, kNarrowLookupStride>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
    float sum[2] = {0, 0};
    const bool any = walk.left > 0;
    walk.begin_columns();
    if (any) {
      if constexpr (Unroll == 2) {
        walk.multiply_unrolled(sum);
      } else {
        walk.multiply_moving(sum);
      }
    }
    leave_narrow<Strips>(slots, sum, first, warp() % Strips);
    finish_narrow<T, Cols, Strips, Warps>(slots, a, batch);
  }
}

}  // namespace cudabk
