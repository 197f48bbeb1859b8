// Weights of 16-bit floats times up to 64 columns, on tensor cores, bound by reading the weights. The other way round
// than tiles: each warp of a block converts and holds the activations of its own part of k in registers for all the
// strips of 16 rows that the block computes, and weights go from global memory straight into operand A, one strip
// ahead. The warps' sums meet in shared memory, in their order; where k is longer than a block holds, parts of it go to
// different units of work and mmsf_reduce adds them.
#pragma once

#include "mmsf/held.h"
#include "mmvq/vector.h"

namespace cudabk {

// A unit of work: strip `strip` of the weights of a batch entry, times part `split` of k.
struct MmsfUnit {
  int32_t strip, split, batch;
};

inline MmsfUnit mmsf_unit(const MmsfArgs& a, int64_t i) {
  const int64_t part = i / a.strips;
  return {static_cast<int32_t>(i % a.strips), static_cast<int32_t>(part % a.splits),
          static_cast<int32_t>(part / a.splits)};
}

// The weights of a strip that are under way to a warp: rows g and g + 8.
template <DType W, int Chunks, bool Vector>
struct StripWeights {
  Eight chunks[Chunks][2];

  struct Place {
    const uint8_t* rows[2];  // element k0 + 8t of rows g and g + 8; past the end: the last row
    int32_t left;            // elements from there to the end of k, or less than 1
  };
  static Place place(const MmsfArgs& a, const MmsfUnit& u, int k0) {
    Place p;
    const uint8_t* weights = a.weights + weight_offset(a.batch, u.batch, a.stride2, a.stride3);
    for (int h = 0; h < 2; ++h) {
      const int row = u.strip * kMmsfRows + 8 * h + lane() / 4;
      p.rows[h] = weights + static_cast<int64_t>(row < a.m ? row : a.m - 1) * a.row_stride +
                  static_cast<int64_t>(k0) * block_bytes(W);
    }
    p.left = a.k - k0;
    return p;
  }

  void load(const Place& p, int chunk) {
    const int left = p.left - chunk * kMmsfChunk;
    for (int h = 0; h < 2; ++h) {
      const uint8_t* at = p.rows[h] + chunk * kMmsfChunk * block_bytes(W);
      Eight& e = chunks[chunk][h];
      if constexpr (Vector) {
        const u32x4 raw = left > 0 ? load_streaming(reinterpret_cast<const u32x4*>(at)) : u32x4{0, 0, 0, 0};
        e = {{raw.x, raw.y, raw.z, raw.w}};
      } else {
        const auto* elements = reinterpret_cast<const uint16_t*>(at);
        for (int i = 0; i < 4; ++i) {
          const uint32_t low = 2 * i < left ? load_streaming(elements + 2 * i) : 0;
          const uint32_t high = 2 * i + 1 < left ? load_streaming(elements + 2 * i + 1) : 0;
          e.words[i] = low | high << 16;
        }
      }
    }
  }
};

template <DType W, int Tiles>
void multiply_chunk(float (&sum)[Tiles][4], const Eight (&w)[2], const Eight (&x)[Tiles]) {
  for (int s = 0; s < 2; ++s) {
    const uint32_t a[4] = {w[0].words[2 * s], w[1].words[2 * s], w[0].words[2 * s + 1], w[1].words[2 * s + 1]};
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
  for (int tile = 0; tile < Tiles; ++tile) {
    for (int i = 0; i < 4; ++i) {
      const int col = 8 * tile + 2 * t + i % 2;
      const float v = scaled ? sum[tile][i] * factors[col] : sum[tile][i];
      strip[col * kMmsfPitch + g + i / 2 * 8] = v;
    }
  }
}

// The block's strip: the warps' sums added in their order.
template <int Tiles, int Warps>
void store_strip(const MmsfArgs& a, const MmsfUnit& u, const float* strips) {
  constexpr int kCols = 8 * Tiles, kStrip = kCols * kMmsfPitch;
  float* dst = a.dst + (static_cast<int64_t>(u.split) * a.batch.batch + u.batch) * a.n * a.m;
  for (int i = thread_x(); i < kCols * kMmsfRows; i += Warps * kWarpSize) {
    const int row = i % kMmsfRows, col = i / kMmsfRows;
    const int64_t m = static_cast<int64_t>(u.strip) * kMmsfRows + row;
    if (m < a.m && col < a.n) {
      float v = 0;
      for (int w = 0; w < Warps; ++w) {
        v += strips[w * kStrip + col * kMmsfPitch + row];
      }
      if (a.epilogue.addend != nullptr && a.splits == 1) {
        v += a.epilogue.addend[m + col * a.epilogue.column_stride + u.batch * a.epilogue.batch_stride];
      }
      dst[m + a.m * static_cast<int64_t>(col)] = v;
    }
  }
}

// Vector: weight and activation rows start on multiples of 16 bytes and k is a multiple of 8.
// grid: x = as many blocks as run at a time, at most `units`; they share the units evenly, each takes consecutive ones.
template <DType W, DType X, int Tiles, int Chunks, int Warps, int Blocks, bool Vector>
KERNEL_MIN_BLOCKS(mmsf, Warps* kWarpSize, Blocks)(MmsfArgs a) {
  using Weights = StripWeights<W, Chunks, Vector>;
  constexpr int kStrip = 8 * Tiles * kMmsfPitch, kHeld = Chunks * kMmsfChunk;
  float* strips = shared_memory<float>();  // [2][Warps][8 * Tiles][kMmsfPitch]
  float* factors = strips + 2 * Warps * kStrip + warp() * 8 * Tiles;
  const int lane_k = warp() * kHeld + lane() % 4 * 8;  // within a block's part of k
  int64_t unit = a.units * block_x() / grid_x();
  const int64_t end = a.units * (block_x() + 1) / grid_x();
  MmsfUnit u = mmsf_unit(a, unit), held = {0, -1, -1};
  Weights weights;
  auto place = Weights::place(a, u, u.split * Warps * kHeld + lane_k);
  for (int c = 0; c < Chunks; ++c) {
    weights.load(place, c);
  }
  allow_next_kernel();
  wait_for_previous_kernel();  // weights are constant: their loads may overlap the kernel before this one
  Held<W, X, Tiles, Chunks, Vector> x;
  for (; unit < end; ++unit) {
    if (u.split != held.split || u.batch != held.batch) {
      held = u;
      const int k0 = u.split * Warps * kHeld + lane_k;
      x.load({a.x + u.batch % a.batch.b2 * a.x_stride2 + u.batch / a.batch.b2 * a.x_stride3 +
                  static_cast<int64_t>(k0) * block_bytes(X),
              a.x_col_stride, a.n, a.k - k0},
             factors);
    }
    const MmsfUnit next = mmsf_unit(a, unit + 1 < end ? unit + 1 : unit);
    place = Weights::place(a, next, next.split * Warps * kHeld + lane_k);
    if (unit + 1 == end) {
      place.left = 0;  // nothing follows
    }
    float sum[Tiles][4] = {};
    for (int c = 0; c < Chunks; ++c) {
      multiply_chunk<W, Tiles>(sum, weights.chunks[c], x.chunks[c]);
      weights.load(place, c);
    }
    float* buffer = strips + unit % 2 * Warps * kStrip;
    put_sums<Tiles>(sum, buffer + warp() * kStrip, x.scaled, factors);
    block_sync();  // every warp is done with the other buffer, too
    store_strip<Tiles, Warps>(a, u, buffer);
    u = next;
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
    for (int s = 0; s < kBatch; ++s) {
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
