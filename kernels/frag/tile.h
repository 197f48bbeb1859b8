// Frag weights times tiles of columns, by warp groups: codes become scaled f16 values in registers, the first operand;
// columns come through a ring in shared memory, the second. A block computes Groups * 64 rows x Cols columns of a part
// of k; the blocks of two parts are a cluster and add their sums through shared memory. While a product of one tile of
// k runs, the next one is decoded.
#pragma once

#include "frag/tile_values.h"
#include "mmvq/vector.h"

namespace cudabk {

static_assert(has_warp_groups(), "not applicable: needs the warp groups of sm_90a");

// Shared memory: a table (frag_lookup.h), stages of [columns][strips of all consumers], the barriers, then what results
// of the columns are multiplied with. A producer warp fills stages, the warp groups (consumers) empty them.
template <DType T, int Cols, int Groups, int Stages, int Cluster>
struct FragTileProduct {
  static constexpr FragShape S = frag_shape(T);
  static constexpr int kUnitBytes = S.unit_bytes();
  static constexpr int kColumnUnit = 4 * kTileColumnsBytes, kColumnsBytes = Cols / 8 * kColumnUnit;
  static constexpr int kStrips = Groups * 4, kStageBytes = kColumnsBytes + kStrips * kUnitBytes;

  struct Walk {
    const uint8_t *weights, *x;  // of the batch
    int begin, units;            // of this part of k
    int total_units;
    int strip0, last_strip, tile0, last_tile;
    const float* scales;  // of this part, of the block's columns
    int columns;          // that exist
  };
  static uint8_t* stage_memory(int stage) {
    return shared_memory<uint8_t>() + frag_lookup_bytes(T) + stage * kStageBytes;
  }
  static SharedBarrier* full(int stage) { return reinterpret_cast<SharedBarrier*>(stage_memory(Stages)) + stage; }
  static SharedBarrier* empty(int stage) { return full(Stages + stage); }
  static float* column_scales() { return reinterpret_cast<float*>(full(2 * Stages)); }

  // ---- the producer warp: lane i copies the i-th strip and column tile ----
  static void copy_strips(const Walk& w, int unit, int stage) {
    uint8_t* to = stage_memory(stage) + kColumnsBytes;
    for (int s = lane(); s < kStrips; s += kWarpSize) {  // strips past the last are read as the last one, not stored
      const int strip = w.strip0 + s < w.last_strip ? w.strip0 + s : w.last_strip;
      bulk_copy(to + s * kUnitBytes,
                w.weights + (static_cast<int64_t>(strip) * w.total_units + w.begin + unit) * kUnitBytes, kUnitBytes,
                full(stage));
    }
  }
  static void copy_columns(const Walk& w, int unit, int stage) {
    uint8_t* to = stage_memory(stage);
    for (int c = lane(); c < Cols / 8; c += kWarpSize) {
      const int tile = w.tile0 + c < w.last_tile ? w.tile0 + c : w.last_tile;
      bulk_copy(to + c * kColumnUnit, w.x + (static_cast<int64_t>(tile) * w.total_units + w.begin + unit) * kColumnUnit,
                kColumnUnit, full(stage));
    }
  }
  static void expect_stage(int stage) {
    if (lane() == 0) {
      barrier_expect(full(stage), kStageBytes);
    }
    warp_sync();
  }
  static void produce(const Walk& w) {
    for (int unit = 0; unit < Stages && unit < w.units; ++unit) {
      expect_stage(unit);
      copy_strips(w, unit, unit);
    }
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    for (int unit = 0; unit < Stages && unit < w.units; ++unit) {
      copy_columns(w, unit, unit);
    }
    for (int c = lane(); c < Cols; c += kWarpSize) {
      column_scales()[c] = c < w.columns ? load_fresh(w.scales + c) : 0.0f;
    }
    for (int unit = Stages, stage = 0, parity = 0; unit < w.units; ++unit) {
      barrier_wait(empty(stage), parity);
      expect_stage(stage);
      copy_strips(w, unit, stage);
      copy_columns(w, unit, stage);
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  // ---- a consumer warp ----
  static void multiply(float (&sum)[Cols / 2], const uint32_t (&a)[4][4], uint64_t columns) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      wgmma_f16(sum, a[j], columns + j * 256 / 16);
    }
  }

  // Tile number Tile of a unit; strip: this warp's in the stage.
  template <int Tile>
  static void multiply_tile(float (&sum)[Cols / 2], uint32_t (&a)[2][4][4], const TileRows& rows, const uint8_t* strip,
                            uint64_t columns) {
    uint32_t(&fragments)[4][4] = a[Tile % 2];
    FragTile<S> tile;
    tile.template load<FragMemory::kShared>(strip, Tile);
    value_fragments<T>(tile, rows, fragments);
    wgmma_fence();
    multiply(sum, fragments, columns + Tile * kTileColumnsBytes / 16);
    wgmma_commit();
    wgmma_wait<1>();
  }
  static void consume(const Walk& w, float (&sum)[Cols / 2], TileRows& rows) {
    uint32_t a[2][4][4];
    for (int unit = 0, stage = 0, parity = 0; unit < w.units; ++unit) {
      const uint8_t* memory = stage_memory(stage);
      const uint8_t* strip = memory + kColumnsBytes + warp() * kUnitBytes;
      const uint64_t columns = wgmma_operand(memory, 128, kColumnUnit);
      barrier_wait(full(stage), parity);
      for (int h = 0; h < 2; ++h) {
        rows.unit[h] = unit_row<S>(load_row_words<S, FragMemory::kShared>(strip, lane() / 4 + 8 * h), rows.product[h]);
      }
      multiply_tile<0>(sum, a, rows, strip, columns);
      if (unit > 0 && lane() == 0) {  // products of the unit before have ended
        barrier_arrive(empty(stage == 0 ? Stages - 1 : stage - 1));
      }
      multiply_tile<1>(sum, a, rows, strip, columns);
      multiply_tile<2>(sum, a, rows, strip, columns);
      multiply_tile<3>(sum, a, rows, strip, columns);
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    wgmma_wait<0>();
  }

  // ---- results ----

  // Sums as values: sum[4c + 2h + o] belongs to row 8h + lane / 4 of the strip, column 8c + 2 * (lane % 4) + o.
  static void scale_sums(float (&sum)[Cols / 2], const TileRows& rows) {
#pragma unroll
    for (int i = 0; i < Cols / 2; ++i) {
      const int h = i / 2 % 2;
      constexpr float kUnit[2] = {frag_row_factor(S, 0) / kSubnormalUnit, frag_row_factor(S, 1) / kSubnormalUnit};
      sum[i] = sum[i] * (h == 0 ? kUnit[0] : kUnit[1]) * column_scales()[i / 4 * 8 + 2 * (lane() % 4) + i % 2] *
               inverse_power(rows.product[h].factor);
    }
  }
  static void store(const FragTileArgs& a, int batch, int part, int i, float v) {
    const int64_t row =
        static_cast<int64_t>(block_x()) * (kStrips * kFragRows) + warp() * kFragRows + 8 * (i / 2 % 2) + lane() / 4;
    const int64_t col = static_cast<int64_t>(block_y()) * Cols + i / 4 * 8 + 2 * (lane() % 4) + i % 2;
    if (row < a.m && col < a.n) {
      if (a.epilogue.addend != nullptr && a.parts == Cluster) {
        v += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
      }
      const int64_t slice = static_cast<int64_t>(part / Cluster) * a.batch.batch + batch;
      a.dst[row + a.m * (col + a.n * slice)] = v;
    }
  }
  // The cluster's parts, added in their order through shared memory: every block adds and stores an equal share of the
  // sums.
  static void store_added(const float (&sum)[Cols / 2], const FragTileArgs& a, int batch, int part) {
    constexpr int kShare = Cols / 2 / Cluster, kThreads = Groups * 128;
    auto* slots = reinterpret_cast<float*>(stage_memory(0)) + thread_x();  // [sum][thread]
    const int first = part % Cluster * kShare;
    if (warp() < Groups * 4) {
#pragma unroll
      for (int i = 0; i < Cols / 2; ++i) {
        slots[i * kThreads] = sum[i];
      }
    }
    if constexpr (Cluster > 1) {
      cluster_sync();
    }
    if (warp() < Groups * 4) {
#pragma unroll 4
      for (int i = first; i < first + kShare; ++i) {
        float v = Cluster == 1 ? slots[i * kThreads] : load_cluster(slots + i * kThreads, 0);
        for (int block = 1; block < Cluster; ++block) {
          v += load_cluster(slots + i * kThreads, block);
        }
        store(a, batch, part, i, v);
      }
    }
    if constexpr (Cluster > 1) {
      cluster_sync_unordered();  // the slots are read
    }
  }

  static void run(const FragTileArgs& args, int batch, int part) {
    const int begin = part_begin(args.units, part, args.parts);
    const int tiles = (args.n + 7) / 8, strips = (args.m + kFragRows - 1) / kFragRows, col0 = block_y() * Cols;
    const Walk w{args.weights + weight_offset(args.batch, batch, args.stride2, args.stride3),
                 args.x + static_cast<int64_t>(batch) * tiles * args.units * kColumnUnit,
                 begin,
                 part_begin(args.units, part + 1, args.parts) - begin,
                 args.units,
                 static_cast<int>(block_x()) * kStrips,
                 strips - 1,
                 col0 / 8,
                 tiles - 1,
                 args.x_scale + (static_cast<int64_t>(batch) * args.parts + part) * args.n + col0,
                 args.n - col0};
    if (thread_x() < 2 * Stages) {
      barrier_init(full(thread_x()), static_cast<int>(thread_x()) < Stages ? 1 : Groups * 4);
      barrier_init_done();
    }
    block_sync();
    allow_next_kernel();
    float sum[Cols / 2] = {};
    TileRows rows;
    if (warp() == Groups * 4) {
      produce(w);
    } else {
      const int own = w.strip0 + warp(), strip = own < strips ? own : strips - 1;
      const auto* factors = reinterpret_cast<const float*>(
          args.row_factor + weight_offset(args.batch, batch, args.factor_stride2, args.factor_stride3));
      rows.product[0] = tile_row<S, 0>(load_readonly(factors + strip * kFragRows + lane() / 4));
      rows.product[1] = tile_row<S, 1>(load_readonly(factors + strip * kFragRows + 8 + lane() / 4));
      consume(w, sum, rows);
    }
    block_sync();  // the columns' scales are there, the stages are free
    if (warp() < Groups * 4) {
      scale_sums(sum, rows);
    }
    store_added(sum, args, batch, part);
    block_sync();  // the next batch entry uses the barriers again
  }
};

// grid: x = ceil(m / (Groups * 64)), y = ceil(n / Cols), z = batch * parts (looped), a multiple of parts.
template <DType T, int Cols, int Groups, int Stages, int Cluster>
KERNEL_CLUSTER(frag_tile, Cluster, Groups * 128 + 32)
(FragTileArgs a) {
  fill_tile_lookup<T, Groups * 4 + 1>();
  for (int z = block_z(); z < a.batch.batch * a.parts; z += grid_z()) {
    FragTileProduct<T, Cols, Groups, Stages, Cluster>::run(a, z / a.parts, z % a.parts);
  }
}

}  // namespace cudabk
