// The activations a warp holds: 32 * Chunks elements of k of 8 * Tiles columns, as operand B of 16-bit tensor-core
// products. Lane 4g + t has elements 8t .. 8t + 7 of every chunk of 32, of column g of every tile: the products take k
// in another order than memory has it, the weights the same one.
#pragma once

#include "common/f16_range.h"
#include "formats/floats.h"
#include "mmsf/args.h"

namespace cudabk {

// The elements that a lane of operand A or B takes at a time.
struct Eight {
  uint32_t words[4];
};

// What a lane knows of the activations it holds.
struct HeldPlace {
  const uint8_t* x;    // element k0 + 8t of column 0
  int64_t col_stride;  // bytes
  int32_t cols;        // that exist
  int32_t left;        // elements from k0 + 8t to the end of k, or less than 1
};

template <DType X, bool Vector>
void load_eight(const uint8_t* p, int left, float (&v)[8]) {
  if constexpr (Vector) {
    if (left > 0) {
      load_floats<X>(p, v);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i] = !Vector && i < left ? load_float<X>(p + i * block_bytes(X)) : 0.0f;
  }
}

template <DType W>
Eight narrow_eight(const float (&v)[8]) {
  Eight e;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    e.words[i] = W == DType::f16 ? pack_f16(v[2 * i], v[2 * i + 1]) : pack_bf16(v[2 * i], v[2 * i + 1]);
  }
  return e;
}

// Together: chunks of tiles whose loads are issued together. Run, Step: every Run chunks are neighbours, and the next
// ones begin Step chunks further on.
template <DType W, DType X, int Tiles, int Chunks, int Together, bool Vector, int Run = Chunks, int Step = Chunks>
struct Held {
  static constexpr bool kScales = W == DType::f16 && X == DType::f32;
  static constexpr int kDepth = Chunks < Together ? Chunks : Together;
  static constexpr int kWidth = Tiles < Together / kDepth ? Tiles : Together / kDepth;

  Eight chunks[Chunks][Tiles];
  bool scaled;  // uniform over the warp: the sums are to be multiplied by what `factors` has

  // factors: shared memory of this warp, one float per column.
  void load(const HeldPlace& p, float* factors) {
    scaled = false;
    float largest[Tiles];
    load_all(p, nullptr, largest);
    if constexpr (kScales) {
      bool fits = true;
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        fits = fits_f16(of_column(largest[tile])) && fits;
      }
      if (!warp_all(fits)) {
        rescale(p, largest, factors);
      }
    }
  }

 private:
  // The largest of the four lanes that share a column.
  static float of_column(float largest) {
    largest = max_f(largest, shuffle_xor(largest, 1));
    return max_f(largest, shuffle_xor(largest, 2));
  }

  // Multiplied by what 1 / factors has (nullptr: 1). largest: |x| of this lane's elements of each tile, before that.
  void load_all(const HeldPlace& p, const float* factors, float (&largest)[Tiles]) {
#pragma unroll
    for (int tile = 0; tile < Tiles; tile += kWidth) {
#pragma unroll
      for (int chunk = 0; chunk < Chunks; chunk += kDepth) {
        load_some(p, tile, chunk, factors, largest);
      }
    }
  }

  void load_some(const HeldPlace& p, int tile0, int chunk0, const float* factors, float (&largest)[Tiles]) {
    float v[kWidth][kDepth][8];
#pragma unroll
    for (int t = 0; t < kWidth; ++t) {
      const int col = 8 * (tile0 + t) + lane() / 4;
      const uint8_t* x = p.x + col * p.col_stride;
      const int left = col < p.cols ? p.left : 0;
#pragma unroll
      for (int c = 0; c < kDepth; ++c) {
        const int chunk = chunk0 + c, at = (chunk / Run * Step + chunk % Run) * kMmsfChunk;
        load_eight<X, Vector>(x + at * block_bytes(X), left - at, v[t][c]);
      }
    }
#pragma unroll
    for (int t = 0; t < kWidth; ++t) {
      const int tile = tile0 + t;
      float most = chunk0 == 0 ? 0.0f : largest[tile];
      const float factor = factors == nullptr ? 1.0f : divide(1.0f, factors[8 * tile + lane() / 4]);
#pragma unroll
      for (int c = 0; c < kDepth; ++c) {
        if constexpr (kScales) {
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            most = max_f(most, abs_f(v[t][c][i]));
            v[t][c][i] = factors == nullptr ? v[t][c][i] : v[t][c][i] * factor;
          }
        }
        chunks[chunk0 + c][tile] = narrow_eight<W>(v[t][c]);
      }
      largest[tile] = most;
    }
  }

  // Rare: some column does not fit f16 as it is.
  void rescale(const HeldPlace& p, float (&largest)[Tiles], float* factors) {
    scaled = true;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      const float most = of_column(largest[tile]);
      if (lane() % 4 == 0) {
        factors[8 * tile + lane() / 4] = fits_f16(most) ? 1.0f : divide(1.0f, f16_factor(most));
      }
    }
    warp_sync();
    load_all(p, factors, largest);
  }
};

}  // namespace cudabk
