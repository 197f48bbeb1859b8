// Frag weights times 8 columns per block, the products' own width. A block computes one strip; its warps take every
// Warps-th unit of k and read it straight into registers: a tile makes room for the same tile of the next unit as soon
// as it is used, so that three are always on their way. Nothing has to be filled first: for a k of few units per warp.
// Any number of columns, 8 at a time.
#pragma once

#include "frag/mins.h"
#include "frag/store.h"
#include "mmvq/vector.h"

namespace cudabk {

template <FragShape S>
struct DirectUnit {
  FragTile<S> tiles[4];
  uint32_t next_rows[2];

  void load_rows(const uint8_t* unit) {
    next_rows[0] = load_row_words<S, FragMemory::kConstant>(unit, lane() / 4);
    next_rows[1] = load_row_words<S, FragMemory::kConstant>(unit, lane() / 4 + 8);
  }
  void load(const uint8_t* unit) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      tiles[i].template load<FragMemory::kConstant>(unit, i);
    }
    load_rows(unit);
  }
};

// Tile number Tile of the current unit, and those after it; minima are only collected. `next`: the strip's next unit,
// read if there is more.
template <DType T, bool More, int Tile = 0>
void multiply_direct_tiles(float (&sum)[4], UnitMins<frag_shape(T)>& mins, DirectUnit<frag_shape(T)>& w,
                           const FragRows& rows, const uint8_t* columns, const uint8_t* next) {
  constexpr FragShape S = frag_shape(T);
  if constexpr (Tile < 4) {
    ColumnStep<S> x;
    FragStep<T, 0> first;
    load_column_step<S, FragMemory::kWritten>(columns, 2 * Tile, x);
    first.decode(w.tiles[Tile], rows);
    multiply_step<T, 0>(sum, first, x);
    FragStep<T, 1> second;
    load_column_step<S, FragMemory::kWritten>(columns, 2 * Tile + 1, x);
    second.decode(w.tiles[Tile], rows);
    if constexpr (S.has_min()) {
      mins.template take<Tile>(w.tiles[Tile]);
    }
    if constexpr (More) {
      w.tiles[Tile].template load<FragMemory::kConstant>(next, Tile);
    }
    multiply_step<T, 1>(sum, second, x);
    multiply_direct_tiles<T, More, Tile + 1>(sum, mins, w, rows, columns, next);
  }
}

template <DType T, bool More>
void multiply_direct_unit(float (&sum)[4], DirectUnit<frag_shape(T)>& w, const uint8_t* columns, const uint8_t* next) {
  constexpr FragShape S = frag_shape(T);
  float part[4] = {};
  const FragRows rows = frag_rows<S>(w.next_rows[0], w.next_rows[1]);
  if constexpr (More) {
    w.load_rows(next);
  }
  GroupSums<S> x;
  if constexpr (S.has_min()) {
    x.template load<FragMemory::kWritten>(columns);
  }
  UnitMins<S> mins;
  multiply_direct_tiles<T, More>(part, mins, w, rows, columns, next);
  if constexpr (S.has_min()) {
    add_mins<S>(part, mins, x, rows);
  }
  const auto* scales = reinterpret_cast<const f32x2*>(columns + column_scale_place(S.group, 8));
  const f32x2 scale = load_fresh(scales + lane() % 4);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum[i] = fma_f(i % 2 == 0 ? scale.x : scale.y, part[i], sum[i]);
  }
}

// Blocks of an SM that registers are bounded for: Blackwell's compiler would spill a word at two.
constexpr int direct_blocks() { return kArch >= 1000 ? 1 : 2; }

// grid: x = ceil(m / 16), y = ceil(n / 8), z = batch (looped).
template <DType T, int Warps>
KERNEL_MIN_BLOCKS(frag_direct, Warps* kWarpSize, direct_blocks())(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kUnit = S.unit_bytes(), kColumnUnit = column_unit_bytes(S.group, 8);
  const int tiles = (a.n + 7) / 8;
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const uint8_t* weights = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3) +
                             (static_cast<int64_t>(block_x()) * a.units + warp()) * kUnit;
    DirectUnit<S> current;
    if (warp() < a.units) {
      current.load(weights);
    }
    fill_frag_lookup<T, Warps>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
    const uint8_t* columns = a.x + ((static_cast<int64_t>(batch) * tiles + block_y()) * a.units + warp()) * kColumnUnit;
    float sum[1][1][4] = {};
    int unit = warp();
    for (; unit + Warps < a.units; unit += Warps, columns += Warps * kColumnUnit) {
      weights += Warps * kUnit;
      multiply_direct_unit<T, true>(sum[0][0], current, columns, weights);
    }
    if (unit < a.units) {
      multiply_direct_unit<T, false>(sum[0][0], current, columns, weights);
    }
    finish_wide<T, 1, 1, Warps>(sum, a, batch);
  }
}

}  // namespace cudabk
