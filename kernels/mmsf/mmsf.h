// Weights of 16-bit floats times up to 64 columns, on tensor cores, bound by reading the weights. The other way round
// than tiles: each warp of a block converts and holds the activations of its own part of k in registers for all the
// strips of 16 rows that the block computes, and weights go from global memory straight into operand A, one strip
// ahead. The warps' sums meet in shared memory, in their order; where k is longer than a block holds, neighbouring
// blocks take parts of it and mmsf_reduce adds them.
#pragma once

#include "mmsf/held.h"
#include "mmvq/vector.h"

namespace cudabk {

// The weights of a strip that are under way to a warp: rows g and g + 8.
template <DType W, int Chunks, MmsfAccess Access>
struct StripWeights {
  Eight chunks[Chunks][2];

  struct Place {
    const uint8_t* rows[2];  // element k0 + 8t of rows g and g + 8; past the end: the last row
    int32_t left;            // elements from there to the end of k, or less than 1
  };
  // weights: of the batch entry; rows past the end of the matrix read as its last one.
  static Place place(const MmsfArgs& a, const uint8_t* weights, int strip, int k0) {
    Place p;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = strip * kMmsfRows + 8 * h + lane() / 4;
      p.rows[h] = weights + static_cast<int64_t>(row < a.m ? row : a.m - 1) * a.row_stride +
                  static_cast<int64_t>(k0) * block_bytes(W);
    }
    p.left = strip * kMmsfRows < a.m ? a.k - k0 : 0;
    return p;
  }

  // Chunks 2 * pair and 2 * pair + 1: whole lines of 128 bytes by consecutive loads.
  void load(const Place& p, int pair) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int c = 2 * pair; c < 2 * pair + 2; ++c) {
        load_eight(p.rows[h] + c * kMmsfChunk * block_bytes(W), p.left - c * kMmsfChunk, chunks[c][h]);
      }
    }
  }

 private:
  static void load_eight(const uint8_t* at, int left, Eight& e) {
    if constexpr (Access == MmsfAccess::kWhole) {
      const u32x4 raw = load_streaming(reinterpret_cast<const u32x4*>(at));
      e = {{raw.x, raw.y, raw.z, raw.w}};
    } else if constexpr (Access == MmsfAccess::kVector) {
      const u32x4 raw = left > 0 ? load_streaming(reinterpret_cast<const u32x4*>(at)) : u32x4{0, 0, 0, 0};
      e = {{raw.x, raw.y, raw.z, raw.w}};
    } else {
      const auto* elements = reinterpret_cast<const uint16_t*>(at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t low = 2 * i < left ? load_streaming(elements + 2 * i) : 0;
        const uint32_t high = 2 * i + 1 < left ? load_streaming(elements + 2 * i + 1) : 0;
        e.words[i] = low | high << 16;
      }
    }
  }
};

template <DType W, int Tiles>
void multiply_chunk(float (&sum)[Tiles][4], const Eight (&w)[2], const Eight (&x)[Tiles]) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    const uint32_t a[4] = {w[0].words[2 * s], w[1].words[2 * s], w[0].words[2 * s + 1], w[1].words[2 * s + 1]};
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      const uint32_t b[2] = {x[tile].words[2 * s], x[tile].words[2 * s + 1]};
      if constexpr (W == DType::f16) {
        mma_f16_16816(sum[tile], a, b);
      } else {
        mma_bf16_16816(sum[tile], a, b);
      }
    }
  }
}

// A warp's sums of a strip into shared memory: [8 * Tiles][kMmsfPitch].
template <int Tiles>
void put_sums(float (&sum)[Tiles][4], float* strip, bool scaled, const float* factors) {
  const int g = lane() / 4, t = lane() % 4;
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int col = 8 * tile + 2 * t + i % 2;
      const float v = scaled ? sum[tile][i] * factors[col] : sum[tile][i];
      strip[col * kMmsfPitch + g + i / 2 * 8] = v;
    }
  }
}

// The block's strip: the warps' sums added in their order.
template <int Tiles, int Warps>
void store_strip(const MmsfArgs& a, int batch, int split, int strip, const float* strips) {
  constexpr int kCols = 8 * Tiles, kStrip = kCols * kMmsfPitch;
  float* dst = a.dst + (static_cast<int64_t>(split) * a.batch.batch + batch) * a.n * a.m;
  for (int i = thread_x(); i < kCols * kMmsfRows; i += Warps * kWarpSize) {
    const int row = i % kMmsfRows, col = i / kMmsfRows;
    const int64_t m = static_cast<int64_t>(strip) * kMmsfRows + row;
    if (m < a.m && col < a.n) {
      float v = 0;
#pragma unroll
      for (int w = 0; w < Warps; ++w) {
        v += strips[w * kStrip + col * kMmsfPitch + row];
      }
      if (a.epilogue.addend != nullptr && a.splits == 1) {
        v += a.epilogue.addend[m + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
      }
      dst[m + a.m * static_cast<int64_t>(col)] = v;
    }
  }
}

// A block computes part `split` of k of every groups-th strip: blocks that run together read neighbouring memory.
// grid: x = splits * groups, as many groups of blocks as run at a time; z = batch (looped).
template <DType W, DType X, int Tiles, int Chunks, int Warps, int Blocks, MmsfAccess Access>
KERNEL_MIN_BLOCKS(mmsf, Warps* kWarpSize, Blocks)(MmsfArgs a) {
  using Weights = StripWeights<W, Chunks, Access>;
  constexpr int kStrip = 8 * Tiles * kMmsfPitch, kHeld = Chunks * kMmsfChunk, kPairs = Chunks / 2;
  constexpr int kTogether = mmsf_together(Tiles, Chunks, mmsf_register_room(Warps, Blocks));
  constexpr int kEarly = kTogether == 8 || kPairs == 1 ? kPairs : kPairs / 2;  // under way while activations are loaded
  static_assert(Chunks % 2 == 0);
  float* strips = shared_memory<float>();  // [2][Warps][8 * Tiles][kMmsfPitch]
  float* factors = strips + 2 * Warps * kStrip + warp() * 8 * Tiles;
  const int split = block_x() % a.splits, groups = grid_x() / a.splits;
  const int k0 = (split * Warps + warp()) * kHeld + lane() % 4 * 8;
#pragma unroll 1
  for (int batch = block_z(); batch < a.batch.batch; batch += grid_z()) {
    const uint8_t* rows = a.weights + weight_offset(a.batch, batch, a.stride2, a.stride3);
    int strip = block_x() / a.splits;
    Weights weights;
    auto place = Weights::place(a, rows, strip, k0);
#pragma unroll
    for (int pair = 0; pair < kEarly; ++pair) {
      weights.load(place, pair);
    }
    allow_next_kernel();
    wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
    Held<W, X, Tiles, Chunks, kTogether, Access != MmsfAccess::kElements> x;
    x.load({a.x + batch % a.batch.b2 * a.x_stride2 + batch / a.batch.b2 * a.x_stride3 +
                static_cast<int64_t>(k0) * block_bytes(X),
            a.x_col_stride, a.n, a.k - k0},
           factors);
#pragma unroll
    for (int pair = kEarly; pair < kPairs; ++pair) {
      weights.load(place, pair);
    }
#pragma unroll 1
    for (int buffer = 0; strip * kMmsfRows < a.m; strip += groups, buffer ^= 1) {
      place = Weights::place(a, rows, strip + groups, k0);
      float sum[Tiles][4] = {};
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        multiply_chunk<W, Tiles>(sum, weights.chunks[2 * pair], x.chunks[2 * pair]);
        multiply_chunk<W, Tiles>(sum, weights.chunks[2 * pair + 1], x.chunks[2 * pair + 1]);
        weights.load(place, pair);
      }
      put_sums<Tiles>(sum, strips + (buffer * Warps + warp()) * kStrip, x.scaled, factors);
      block_sync();  // every warp is done with the other buffer, too
      store_strip<Tiles, Warps>(a, batch, split, strip, strips + buffer * Warps * kStrip);
    }
    block_sync();  // the next batch entry reuses the memory
  }
}

// Adds the parts of k in their order. Vector: m is a multiple of 4 and everything is 16-byte aligned.
// grid: x = ceil(total / (4 or 1) / Threads).
template <bool Vector>
KERNEL(mmsf_reduce, kMmsfReduceThreads)(MmsfReduceArgs a) {
  constexpr int kElements = Vector ? 4 : 1, kBatch = 8;
  const int64_t i = (static_cast<int64_t>(block_x()) * kMmsfReduceThreads + thread_x()) * kElements;
  allow_next_kernel();
  wait_for_previous_kernel();
  if (i >= a.total) {
    return;
  }
  float sum[kElements] = {};
  for (int first = 0; first < a.splits; first += kBatch) {
    float part[kBatch][kElements];
#pragma unroll
    for (int s = 0; s < kBatch; ++s) {
      const auto* p = reinterpret_cast<const uint8_t*>(a.partial + (first + s) * a.total + i);
      if (first + s < a.splits) {
        if constexpr (Vector) {
          load_floats<DType::f32>(p, part[s]);
        } else {
          part[s][0] = load_float<DType::f32>(p);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kBatch; ++s) {
#pragma unroll
      for (int e = 0; e < kElements && first + s < a.splits; ++e) {
        sum[e] += part[s][e];
      }
    }
  }
  if (a.epilogue.addend != nullptr) {
    const int64_t row = i % a.m, col = i / a.m % a.n, batch = i / a.m / a.n;
    const float* addend = a.epilogue.addend + row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride;
    for (int e = 0; e < kElements; ++e) {
      sum[e] += addend[e];
    }
  }
  if constexpr (Vector) {
    store_whole(reinterpret_cast<f32x4*>(a.dst + i), f32x4{sum[0], sum[1], sum[2], sum[3]});
  } else {
    a.dst[i] = sum[0];
  }
}

}  // namespace cudabk
