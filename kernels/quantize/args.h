// Activations packed for integer dot products: signed bytes with one float scale per 32 elements, in the order in which
// the lanes of mmvq read them, so that a warp's load is one contiguous piece. A layout of our own, one per slice shape
// of the weight format; no overflow however large the activations are.
//
// A row of k elements holds k / elements slices of weights; a warp takes 32 of them. 16-byte chunk c of slice s is
// chunk number (s / 32 * chunks + c) * 32 + s % 32 of the row's codes; run r of slice s has scale (s / 32 * runs + r) *
// 32 + s % 32.
#pragma once

#include "formats/slices.h"

namespace cudabk {

constexpr int kActivationBlock = 32;  // elements that share a scale

struct ActivationScale {  // of a run
  float d;                // value = d * code
  float sum;              // of the run's codes
};

// Warps' worth of slices in a row, the last one padded.
constexpr int64_t activation_groups(SliceShape shape, int64_t k) { return (k / shape.elements() + 31) / 32; }
constexpr int64_t activation_code_bytes(SliceShape shape, int64_t k) {  // of a row
  return activation_groups(shape, k) * shape.chunks() * 32 * 16;
}
constexpr int64_t activation_scales(SliceShape shape, int64_t k) {  // of a row
  return activation_groups(shape, k) * shape.runs * 32;
}

struct QuantizeArgs {
  const uint8_t* x;         // f32 [k, n, b2, b3] with the byte strides below, rows dense
  int8_t* codes;            // [rows][activation_code_bytes], rows = n * b2 * b3
  ActivationScale* scales;  // [rows][activation_scales]
  int64_t nb1, nb2, nb3;
  int64_t n, b2;  // rows are numbered col + n * (i2 + b2 * i3)
  int64_t rows;
  int32_t k;  // multiple of 32
};

}  // namespace cudabk
