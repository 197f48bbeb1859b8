// 16-bit float weights times up to 64 columns, by warp groups: rows of weights and columns come through one ring in
// shared memory. A block computes Groups * 64 rows x Cols columns of a part of k and keeps the sums in registers.
// Share: blocks along x that are a cluster, and copy every column once for all of them.
#pragma once

#include "formats/dtypes.h"
#include "mmsf/group_args.h"
#include "mmvq/vector.h"
#include "platform/platform.h"

namespace cudabk {

static_assert(has_warp_groups(), "not applicable: needs the warp groups of sm_90a");

// Shared memory: stages of [columns][rows of all groups], the barriers, then the columns' scales. Producer warps fill
// stages, warp groups (consumers) empty them. Depth: elements of k of a stage. Whole: every stage is full.
template <DType W, int Cols, int Groups, int Depth, int Stages, int Share, bool Whole>
struct GroupProduct {
  static constexpr int kRows = Groups * 64, kPitch = group_pitch(Depth), kUnits = 4 * kTileColumnsBytes;
  static constexpr int kAhead = Stages < kGroupAhead ? Stages : kGroupAhead;
  static constexpr int kTileBytes = Depth * 16, kColumnsBytes = Cols / 8 * kTileBytes;
  static constexpr int kStageBytes = kColumnsBytes + kRows * kPitch;
  static constexpr int kProducers = kGroupProducers * kWarpSize;
  static constexpr int kBatches = Depth > 128 ? 4 : 2, kSteps = Depth / 16 / kBatches;  // products of a stage

  struct Walk {
    const uint8_t *weights, *x;  // of the batch entry, at the part's first element of k
    int64_t row_stride, tile_stride;
    int elements, stages;  // of k
    int row0, last_row, last_tile;
    const float* scales;  // of this part
    int columns;          // that exist
  };
  static uint8_t* stage_memory(int stage) { return shared_memory<uint8_t>() + stage * kStageBytes; }
  static SharedBarrier* full(int stage) { return reinterpret_cast<SharedBarrier*>(stage_memory(Stages)) + stage; }
  static SharedBarrier* empty(int stage) { return full(Stages + stage); }
  static float* column_scales() { return reinterpret_cast<float*>(full(2 * Stages)); }
  static int left_of(const Walk& w, int fill) { return w.elements - fill * Depth; }

  // ---- the producer warps ----

  // Rows past the last are read as the last one, not stored.
  static const uint8_t* row_of(const Walk& w, int row) {
    return w.weights + (w.row0 + row < w.last_row ? w.row0 + row : w.last_row) * w.row_stride;
  }
  // 16 bytes at a time, zeros past k.
  static void copy_rows(const Walk& w, int fill, int stage, int thread) {
    constexpr int kPieces = Depth / 8, kTogether = kProducers / kPieces;
    const int at = thread % kPieces * 16, left = left_of(w, fill);
    uint8_t* to = stage_memory(stage) + kColumnsBytes + at;
    const int64_t from = static_cast<int64_t>(fill) * Depth * 2 + at;
#pragma unroll 4
    for (int i = 0; i < kRows / kTogether; ++i) {
      const int row = i * kTogether + thread / kPieces;
      async_copy_16(to + row * kPitch, row_of(w, row) + from, Whole || at < left * 2);
    }
    barrier_arrive_after_copies(full(stage));
  }
  static void copy_columns(const Walk& w, int fill, int stage) {
    for (int i = lane(); i < Cols / 8 / Share; i += kWarpSize) {
      const int c = block_x() % Share * (Cols / 8 / Share) + i;
      const int tile = c < w.last_tile ? c : w.last_tile;
      const uint8_t* from = w.x + tile * w.tile_stride + static_cast<int64_t>(fill) * kTileBytes;
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
      barrier_expect(full(stage), kColumnsBytes);
    }
    copy_rows(w, fill, stage, thread);
  }
  static void produce(const Walk& w) {
    const int thread = thread_x() - Groups * 128;
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

  // Products of batch number Batch of a stage; rows: this lane's address in it.
  template <int Batch>
  static void multiply_batch(float (&sum)[Cols / 2], uint32_t (&a)[2][kSteps][4], const uint8_t* rows,
                             uint64_t columns) {
    uint32_t(&mine)[kSteps][4] = a[Batch % 2];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      ldmatrix_x4(mine[s], rows + (Batch * kSteps + s) * 32);
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
      barrier_wait(full(stage), parity);
      multiply_batch<0>(sum, a, rows, columns);
      if (fill > 0) {  // products of the stage before have ended
        release_stage(stage == 0 ? Stages - 1 : stage - 1);
      }
      multiply_batch<1>(sum, a, rows, columns);
      if constexpr (kBatches > 2) {
        multiply_batch<2>(sum, a, rows, columns);
        multiply_batch<3>(sum, a, rows, columns);
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
  // Through shared memory: addresses of all sums at once take more registers than there are.
  static void store(const float (&sum)[Cols / 2], const GroupArgs& a, int batch, int part) {
    constexpr int kThreads = Groups * 128;
    auto* slots = reinterpret_cast<float*>(stage_memory(0)) + thread_x();  // [sum][thread]
#pragma unroll
    for (int i = 0; i < Cols / 2; ++i) {
      slots[i * kThreads] = sum[i];
    }
    const int64_t row0 = static_cast<int64_t>(block_x()) * kRows + warp() * 16 + lane() / 4;
    float* dst = a.dst + (static_cast<int64_t>(part) * a.batch.batch + batch) * a.n * a.m;
#pragma unroll 4
    for (int i = 0; i < Cols / 2; ++i) {
      const int64_t row = row0 + 8 * (i / 2 % 2), col = i / 4 * 8 + 2 * (lane() % 4) + i % 2;
      if (row < a.m && col < a.n) {
        float v = slots[i * kThreads];
        if (a.epilogue.addend != nullptr && a.parts == 1) {
          v += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
        }
        dst[row + a.m * col] = v;
      }
    }
  }

  static Walk walk(const GroupArgs& a, int batch, int part) {
    const int units = (a.k + kFragDepth - 1) / kFragDepth, tiles = (a.n + 7) / 8;
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
            tiles - 1,
            W == DType::f16 ? a.x_scale + (static_cast<int64_t>(batch) * a.parts + part) * a.n : nullptr,
            a.n};
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
      barrier_init(full(thread_x()), fills ? 1 + kProducers : Groups * 4 * Share);
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
    if (warp() < Groups * 4) {
      if constexpr (W == DType::f16) {
        scale_sums(sum);
      }
      store(sum, args, batch, part);
    }
    sync_blocks();  // the next batch entry uses the barriers again
  }
};

// grid: x = ceil(m / (Groups * 64)) up to a multiple of Share, z = batch * parts (looped), a multiple of parts.
template <DType W, int Cols, int Groups, int Depth, int Stages, int Share, bool Whole>
KERNEL_CLUSTER_X(mmsf_group, Share, group_threads(Groups))
(GroupArgs a) {
  for (int z = block_z(); z < a.batch.batch * a.parts; z += grid_z()) {
    GroupProduct<W, Cols, Groups, Depth, Stages, Share, Whole>::run(a, z / a.parts, z % a.parts);
  }
}

}  // namespace cudabk
