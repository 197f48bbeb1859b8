// 16-bit float weights times tiles of columns, by warp groups: rows of weights and columns come through one ring in
// shared memory. A block computes Groups * 64 rows x Cols columns of a part of k and keeps the sums in registers; the
// blocks of `Cluster` parts are a cluster and add theirs through shared memory. Share: blocks along x that are a
// cluster and copy every column once for all of them.
#pragma once

#include "formats/dtypes.h"
#include "mmsf/group_args.h"
#include "mmvq/vector.h"
#include "platform/platform.h"

namespace cudabk {

static_assert(has_warp_groups(), "not applicable: needs the warp groups of sm_90a");

// Shared memory: stages of [columns][rows of all groups], the barriers, then the columns' scales. Producer warps fill
// stages, warp groups (consumers) empty them. Depth: elements of k of a stage. Bulk: a row's piece is one bulk copy,
// else its 16 bytes are asynchronous copies of the producers. Whole: every stage is full.
template <DType W, int Cols, int Groups, int Depth, int Stages, int Cluster, int Share, int Copies, bool Whole>
struct GroupProduct {
  static constexpr int kRows = Groups * 64, kPitch = group_pitch(Depth), kUnits = 4 * kTileColumnsBytes;
  static constexpr bool Bulk = Copies % 2 == 1, kRotate = Copies / 2 % 2 == 1, kHint = Copies / 4 % 2 == 1;
  static constexpr int kAhead = Copies < 8 || Copies / 8 > Stages ? Stages : Copies / 8;
  static constexpr int kTileBytes = Depth * 16, kColumnsBytes = Cols / 8 * kTileBytes;
  static constexpr int kStageBytes = kColumnsBytes + kRows * kPitch;
  static constexpr int kProducers = kGroupProducers * kWarpSize;
  static constexpr int kBatches = Depth > 128 ? 4 : 2, kSteps = Depth / 16 / kBatches;  // products of a stage

  struct Walk {
    const uint8_t *weights, *x;  // of the batch entry, at the part's first element of k
    int64_t row_stride, tile_stride;
    int elements, stages;  // of k
    int row0, last_row, tile0, last_tile;
    const float* scales;  // of this part, of the block's columns
    int columns;          // that exist
    int first;            // stage
  };
  static uint8_t* stage_memory(int stage) { return shared_memory<uint8_t>() + stage * kStageBytes; }
  static SharedBarrier* full(int stage) { return reinterpret_cast<SharedBarrier*>(stage_memory(Stages)) + stage; }
  static SharedBarrier* empty(int stage) { return full(Stages + stage); }
  static float* column_scales() { return reinterpret_cast<float*>(full(2 * Stages)); }
  static int place_of(const Walk& w, int fill) {
    return fill + w.first < w.stages ? fill + w.first : fill + w.first - w.stages;
  }
  static int left_of(const Walk& w, int fill) { return w.elements - place_of(w, fill) * Depth; }

  // ---- the producer warps ----

  // Rows past the last are read as the last one, not stored.
  static const uint8_t* row_of(const Walk& w, int row) {
    return w.weights + (w.row0 + row < w.last_row ? w.row0 + row : w.last_row) * w.row_stride;
  }
  static void copy_rows(const Walk& w, int fill, int stage, int thread) {
    uint8_t* to = stage_memory(stage) + kColumnsBytes;
    const int64_t k_bytes = static_cast<int64_t>(place_of(w, fill)) * Depth * 2;
    const int left = left_of(w, fill);
    if constexpr (Bulk) {
      for (int row = thread; row < kRows; row += kProducers) {
        bulk_copy(to + row * kPitch, row_of(w, row) + k_bytes, (Whole || left > Depth ? Depth : left) * 2, full(stage));
      }
    } else {
      constexpr int kPieces = Depth / 8, kTogether = kProducers / kPieces;
      const int at = thread % kPieces * 16;
#pragma unroll 4
      for (int i = 0; i < kRows / kTogether; ++i) {
        const int row = i * kTogether + thread / kPieces;
        if constexpr (kHint) {
          async_copy_16_256(to + row * kPitch + at, row_of(w, row) + k_bytes + at, Whole || at < left * 2);
        } else {
          async_copy_16(to + row * kPitch + at, row_of(w, row) + k_bytes + at, Whole || at < left * 2);
        }
      }
      barrier_arrive_after_copies(full(stage));
    }
  }
  // By one thread: a stage's bytes that come by bulk copies.
  static void expect_stage(const Walk& w, int fill, int stage) {
    const int left = left_of(w, fill), row_bytes = (Whole || left > Depth ? Depth : left) * 2;
    barrier_expect(full(stage), kColumnsBytes + (Bulk ? kRows * row_bytes : 0));
  }
  static void copy_columns(const Walk& w, int fill, int stage) {
    for (int i = lane(); i < Cols / 8 / Share; i += kWarpSize) {
      const int c = block_x() % Share * (Cols / 8 / Share) + i;
      const int tile = w.tile0 + c < w.last_tile ? w.tile0 + c : w.last_tile;
      const uint8_t* from = w.x + tile * w.tile_stride + static_cast<int64_t>(place_of(w, fill)) * kTileBytes;
      uint8_t* to = stage_memory(stage) + c * kTileBytes;
      if constexpr (Share == 1) {
        bulk_copy(to, from, kTileBytes, full(stage));
      } else {
        bulk_copy_cluster(to, from, kTileBytes, full(stage), (1 << Share) - 1);
      }
    }
  }
  static void fill_stage(const Walk& w, int fill, int stage, int thread) {
    if (thread == 0) {
      expect_stage(w, fill, stage);
    }
    copy_rows(w, fill, stage, thread);
  }
  static void produce(const Walk& w) {
    const int thread = thread_x() - Groups * 128;
    if (Bulk && thread >= kRows) {
      return;  // nothing to copy, so no stage would wait for it
    }
    int fill = 0;
    for (; fill < kAhead && fill < w.stages; ++fill) {
      fill_stage(w, fill, fill, thread);
    }
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    const bool columns = thread < kWarpSize;  // the first warp copies them
    if (columns) {
      warp_sync();
      for (int i = 0; i < fill; ++i) {
        copy_columns(w, i, i);
      }
      for (int c = lane(); W == DType::f16 && c < Cols; c += kWarpSize) {
        column_scales()[c] = c < w.columns ? load_fresh(w.scales + c) : 0.0f;
      }
    }
    for (int stage = fill % Stages, parity = fill < Stages ? 1 : 0; fill < w.stages; ++fill) {
      if (fill >= Stages) {
        barrier_wait(empty(stage), parity);
      }
      fill_stage(w, fill, stage, thread);
      if (columns) {
        warp_sync();
        copy_columns(w, fill, stage);
      }
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  // ---- a consumer warp ----

  // Operand A of a step; left: elements of k from its first one on.
  static void load_rows(uint32_t (&a)[4], const uint8_t* at, int left) {
    ldmatrix_x4(a, at);
    if constexpr (!Whole) {
      a[0] = left > 0 ? a[0] : 0;
      a[1] = left > 0 ? a[1] : 0;
      a[2] = left > 8 ? a[2] : 0;
      a[3] = left > 8 ? a[3] : 0;
    }
  }
  // Products of batch number Batch of a stage; rows: this lane's address in it.
  template <int Batch>
  static void multiply_batch(float (&sum)[Cols / 2], uint32_t (&a)[2][kSteps][4], const uint8_t* rows, uint64_t columns,
                             int left) {
    uint32_t(&mine)[kSteps][4] = a[Batch % 2];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      load_rows(mine[s], rows + (Batch * kSteps + s) * 32, left - (Batch * kSteps + s) * 16);
    }
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const uint64_t b = columns + (Batch * kSteps + s) * 256 / 16;
      if constexpr (W == DType::f16) {
        wgmma_f16(sum, mine[s], b);
      } else {
        wgmma_bf16(sum, mine[s], b);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();
  }
  static void release_stage(int stage) {
    if (lane() < Share) {
      if constexpr (Share == 1) {
        barrier_arrive(empty(stage));
      } else {
        barrier_arrive_cluster(empty(stage), lane());
      }
    }
  }
  static void consume(const Walk& w, float (&sum)[Cols / 2]) {
    uint32_t a[2][kSteps][4];
    const int own = (warp() * 16 + lane() % 16) * kPitch + lane() / 16 * 16;
    for (int fill = 0, stage = 0, parity = 0; fill < w.stages; ++fill) {
      const uint8_t* memory = stage_memory(stage);
      const uint8_t* rows = memory + kColumnsBytes + own;
      const uint64_t columns = wgmma_operand(memory, 128, kTileBytes);
      const int left = left_of(w, fill);
      barrier_wait(full(stage), parity);
      multiply_batch<0>(sum, a, rows, columns, left);
      if (fill > 0) {  // products of the stage before have ended
        release_stage(stage == 0 ? Stages - 1 : stage - 1);
      }
      multiply_batch<1>(sum, a, rows, columns, left);
      if constexpr (kBatches > 2) {
        multiply_batch<2>(sum, a, rows, columns, left);
        multiply_batch<3>(sum, a, rows, columns, left);
      }
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    wgmma_wait<0>();
  }

  // ---- results: sum[4c + 2h + o] belongs to row 8h + lane / 4 of the warp's, column 8c + 2 * (lane % 4) + o ----

  static void scale_sums(float (&sum)[Cols / 2]) {
#pragma unroll
    for (int i = 0; i < Cols / 2; ++i) {
      sum[i] *= column_scales()[i / 4 * 8 + 2 * (lane() % 4) + i % 2];
    }
  }
  static void store(const GroupArgs& a, int batch, int part, int i, float v) {
    const int64_t row = static_cast<int64_t>(block_x()) * kRows + warp() * 16 + 8 * (i / 2 % 2) + lane() / 4;
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
  static void store_added(const float (&sum)[Cols / 2], const GroupArgs& a, int batch, int part) {
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

  static Walk walk(const GroupArgs& a, int batch, int part) {
    const int units = (a.k + kFragDepth - 1) / kFragDepth, tiles = (a.n + 7) / 8, col0 = block_y() * Cols;
    const int begin = part_begin(units, part, a.parts) * kFragDepth;
    const int part_end = part_begin(units, part + 1, a.parts) * kFragDepth, end = part_end < a.k ? part_end : a.k;
    const int elements = end > begin ? end - begin : 0;
    return {a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3) + static_cast<int64_t>(begin) * 2,
            a.x + static_cast<int64_t>(batch) * tiles * units * kUnits + static_cast<int64_t>(begin) * 16,
            a.row_stride,
            static_cast<int64_t>(units) * kUnits,
            elements,
            (elements + Depth - 1) / Depth,
            static_cast<int>(block_x()) * kRows,
            a.m - 1,
            col0 / 8,
            tiles - 1,
            W == DType::f16 ? a.x_scale + (static_cast<int64_t>(batch) * a.parts + part) * a.n + col0 : nullptr,
            a.n - col0,
            kRotate ? static_cast<int>(block_x() / Share * ((elements + Depth - 1) / Depth) / (grid_x() / Share)) : 0};
  }
  // All blocks that copy into each other's memory.
  static void sync_blocks() {
    if constexpr (Share > 1) {
      cluster_sync_unordered();
    } else {
      block_sync();
    }
  }
  static void run(const GroupArgs& args, int batch, int part) {
    const Walk w = walk(args, batch, part);
    if (thread_x() < 2 * Stages) {
      const bool fills = thread_x() < Stages;
      barrier_init(full(thread_x()), fills ? 1 + (Bulk ? 0 : kProducers) : Groups * 4 * Share);
      barrier_init_done();
    }
    sync_blocks();
    allow_next_kernel();
    float sum[Cols / 2] = {};
    if (warp() >= Groups * 4) {
      produce(w);
    } else {
      consume(w, sum);
    }
    block_sync();  // the columns' scales are there, the stages are free
    if (W == DType::f16 && warp() < Groups * 4) {
      scale_sums(sum);
    }
    store_added(sum, args, batch, part);
    sync_blocks();  // the next batch entry uses the barriers again
  }
};

// grid: x = ceil(m / (Groups * 64)), a multiple of Share; y = ceil(n / Cols), z = batch * parts (looped), a multiple of parts.
template <DType W, int Cols, int Groups, int Depth, int Stages, int Cluster, int Share, int Copies, bool Whole>
KERNEL_CLUSTER_XZ(mmsf_group, Share, Cluster, group_threads(Groups))
(GroupArgs a) {
  for (int z = block_z(); z < a.batch.batch * a.parts; z += grid_z()) {
    GroupProduct<W, Cols, Groups, Depth, Stages, Cluster, Share, Copies, Whole>::run(a, z / a.parts, z % a.parts);
  }
}

}  // namespace cudabk
