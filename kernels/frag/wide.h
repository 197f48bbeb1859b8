// Frag weights times 8 or 16 columns per block, the products' own width or twice that. A block computes Strips strips;
// each of its warps takes every Warps-th unit of k of all of them, through its own ring (frag/ring.h), so that
// activations are fetched once for the strips. Any number of columns, 8 * Tiles at a time.
#pragma once

#include "frag/mins.h"
#include "frag/ring.h"
#include "frag/store.h"
#include "mmvq/vector.h"

namespace cudabk {

// Step Step of tile Tile of a unit, times all column tiles. sum: [strip][column tile][4].
template <DType T, int Tiles, int Strips, int Tile, int Step>
void multiply_wide_step(float (&sum)[Strips][Tiles][4], const FragTile<frag_shape(T)> (&tile)[Strips],
                        const FragRows (&rows)[Strips], const uint8_t* columns) {
  constexpr FragShape S = frag_shape(T);
  FragStep<T, Step> step[Strips];
#pragma unroll
  for (int strip = 0; strip < Strips; ++strip) {
    step[strip].decode(tile[strip], rows[strip]);
  }
#pragma unroll
  for (int c = 0; c < Tiles; ++c) {
    ColumnStep<S> x;
    load_column_step<S, FragMemory::kShared>(columns + c * column_unit_bytes(S.group, 8), 2 * Tile + Step, x);
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      multiply_step<T, Step>(sum[strip][c], step[strip], x);
    }
  }
}

// Tile Tile of the units in `weights`, and those after it; minima are only collected.
template <DType T, int Tiles, int Strips, int Tile = 0>
void multiply_wide_tiles(float (&sum)[Strips][Tiles][4], UnitMins<frag_shape(T)> (&mins)[Strips],
                         const uint8_t* weights, const FragRows (&rows)[Strips], const uint8_t* columns) {
  constexpr FragShape S = frag_shape(T);
  if constexpr (Tile < 4) {
    FragTile<S> tile[Strips];
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      tile[strip].template load<FragMemory::kShared>(weights + strip * S.unit_bytes(), Tile);
      if constexpr (S.has_min()) {
        mins[strip].template take<Tile>(tile[strip]);
      }
    }
    multiply_wide_step<T, Tiles, Strips, Tile, 0>(sum, tile, rows, columns);
    multiply_wide_step<T, Tiles, Strips, Tile, 1>(sum, tile, rows, columns);
    multiply_wide_tiles<T, Tiles, Strips, Tile + 1>(sum, mins, weights, rows, columns);
  }
}

template <DType T, int Tiles, int Strips>
void multiply_wide_unit(float (&sum)[Strips][Tiles][4], const uint8_t* weights, const uint8_t* columns) {
  constexpr FragShape S = frag_shape(T);
  FragRows rows[Strips];
#pragma unroll
  for (int strip = 0; strip < Strips; ++strip) {
    rows[strip] = shared_frag_rows<S>(weights + strip * S.unit_bytes());
  }
  float part[Strips][Tiles][4] = {};
  UnitMins<S> mins[Strips];
  multiply_wide_tiles<T, Tiles, Strips>(part, mins, weights, rows, columns);
#pragma unroll
  for (int c = 0; c < Tiles; ++c) {
    const uint8_t* unit = columns + c * column_unit_bytes(S.group, 8);
    if constexpr (S.has_min()) {
      GroupSums<S> x;
      x.template load<FragMemory::kShared>(unit);
#pragma unroll
      for (int strip = 0; strip < Strips; ++strip) {
        add_mins<S>(part[strip][c], mins[strip], x, rows[strip]);
      }
    }
    const f32x2 scale = reinterpret_cast<const f32x2*>(unit + column_scale_place(S.group, 8))[lane() % 4];
#pragma unroll
    for (int i = 0; i < 4 * Strips; ++i) {
      float& to = sum[i / 4][c][i % 4];
      to = fma_f(i % 2 == 0 ? scale.x : scale.y, part[i / 4][c][i % 4], to);
    }
  }
}

// Blocks of an SM that registers are bounded for: with two, Blackwell's compiler would spill a word, and that of Ampere
// and Ada some of types with a table.
template <DType T>
constexpr int wide_blocks(int strips) {
  return kArch >= 1000 || (kArch < 900 && has_frag_lookup(T)) ? 1 : 2 / strips;
}

// grid: x = ceil(m / (16 * Strips)), y = ceil(n / (8 * Tiles)), z = batch (looped). Two strips of an SM at a time.
template <DType T, int Tiles, int Strips, int Warps, int Stages>
KERNEL_MIN_BLOCKS(frag_wide, Warps* kWarpSize, wide_blocks<T>(Strips))(FragArgs a) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kUnit = S.unit_bytes(), kColumnUnit = column_unit_bytes(S.group, 8);
  UnitRing<kUnit, kColumnUnit, Strips, Tiles, Stages> ring(
      shared_memory<uint8_t>() + frag_wide_rings_place(T, Tiles, Strips, Warps), Warps);
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const int tiles = (a.n + 7) / 8;
    UnitWalk walk = unit_walk<Strips, Warps>(a, batch, kUnit, kColumnUnit, tiles, block_y() * Tiles);
    int left = walk.left;
    ring.begin_weights(walk);
    fill_frag_lookup<T, Warps>();
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    ring.begin(walk);
    float sum[Strips][Tiles][4] = {};
    for (; left > 0; --left) {
      const uint8_t* slot = ring.wait();
      multiply_wide_unit<T, Tiles, Strips>(sum, slot, slot + Strips * kUnit);
      ring.next(walk);
    }
    finish_wide<T, Tiles, Strips, Warps>(sum, a, batch);
  }
}

}  // namespace cudabk
