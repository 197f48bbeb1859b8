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
  for (int i = 0; i < 8; ++i) {
    v[i] = !Vector && i < left ? load_float<X>(p + i * block_bytes(X)) : 0.0f;
  }
}

template <DType W>
Eight narrow_eight(const float (&v)[8]) {
  Eight e;
  for (int i = 0; i < 4; ++i) {
    e.words[i] = W == DType::f16 ? pack_f16(v[2 * i], v[2 * i + 1]) : pack_bf16(v[2 * i], v[2 * i + 1]);
  }
  return e;
}

template <DType W, DType X, int Tiles, int Chunks, bool Vector>
struct Held {
  static constexpr bool kScales = W == DType::f16 && X == DType::f32;
  static constexpr int kBatch = Chunks < 4 ? Chunks : 4;  // chunks whose loads are issued together

  Eight chunks[Chunks][Tiles];
  bool scaled;  // uniform over the warp: the sums are to be multiplied by what `factors` has

  // factors: shared memory of this warp, one float per column.
  void load(const HeldPlace& p, float* factors) {
    scaled = false;
    bool fits = true;
    for (int tile = 0; tile < Tiles; ++tile) {
      const float largest = load_tile(p, tile, 1.0f);
      if constexpr (kScales) {
        fits = fits_f16(of_column(largest)) && fits;
      }
    }
    if constexpr (kScales) {
      if (!warp_all(fits)) {
        rescale(p, factors);
      }
    }
  }

 private:
  // The largest of the four lanes that share a column.
  static float of_column(float largest) {
    largest = max_f(largest, shuffle_xor(largest, 1));
    return max_f(largest, shuffle_xor(largest, 2));
  }

  // Returns the largest |x| of this lane's elements.
  float load_tile(const HeldPlace& p, int tile, float factor) {
    const int col = 8 * tile + lane() / 4;
    const uint8_t* x = p.x + col * p.col_stride;
    const int left = col < p.cols ? p.left : 0;
    float largest = 0;
    for (int first = 0; first < Chunks; first += kBatch) {
      float v[kBatch][8];
      for (int c = 0; c < kBatch; ++c) {
        load_eight<X, Vector>(x + (first + c) * kMmsfChunk * block_bytes(X), left - (first + c) * kMmsfChunk, v[c]);
      }
      for (int c = 0; c < kBatch; ++c) {
        if constexpr (kScales) {
          for (int i = 0; i < 8; ++i) {
            largest = max_f(largest, abs_f(v[c][i]));
            v[c][i] *= factor;
          }
        }
        chunks[first + c][tile] = narrow_eight<W>(v[c]);
      }
    }
    return largest;
  }

  // Rare: some column does not fit f16 as it is.
  void rescale(const HeldPlace& p, float* factors) {
    scaled = true;
    for (int tile = 0; tile < Tiles; ++tile) {
      const float largest = of_column(load_tile(p, tile, 1.0f));
      const float factor = fits_f16(largest) ? 1.0f : f16_factor(largest);
      load_tile(p, tile, factor);
      if (lane() % 4 == 0) {
        factors[8 * tile + lane() / 4] = divide(1.0f, factor);
      }
    }
    warp_sync();
  }
};

}  // namespace cudabk
