// Activations packed for integer dot products: signed bytes with one float scale per 32, and the sum of the bytes of
// each half, for weight formats with an offset. A layout of our own: no overflow however large the activations are.
#pragma once

#include "platform/types.h"

namespace cudabk {

constexpr int kActivationBlock = 32;

struct ActivationScale {  // of 32 elements
  float d;                // value = d * code
  uint32_t sums;          // of the codes 0..15 and 16..31, as f16 (exact: at most 16 * 127) in the low and high half
};

struct QuantizeArgs {
  const uint8_t* x;        // f32 [k, n, b2, b3] with the byte strides below, rows dense
  int8_t* codes;           // [rows][k], rows = n * b2 * b3
  ActivationScale* scales; // [rows][k / 32]
  int64_t nb1, nb2, nb3;
  int64_t n, b2;           // rows are numbered col + n * (i2 + b2 * i3)
  int64_t rows;
  int32_t k;               // multiple of 32
};

}  // namespace cudabk
