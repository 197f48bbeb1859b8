// Conversions around library products: weights to floats, activations to another float type, result scaling.
#pragma once

#include "platform/types.h"

namespace cudabk {

struct DequantizeArgs {
  const uint8_t* weights;  // [k, m, A2, A3] blocks; byte strides below
  uint8_t* dst;            // [rows][k] of the destination type, dense; rows = m * A2 * A3
  int64_t row_stride, stride2, stride3;
  int64_t m, a2, rows;
  int32_t k;
};

struct ConvertArgs {
  const uint8_t* x;  // [k, n, B2, B3], rows dense; byte strides below
  uint8_t* dst;      // [rows][k_padded] of the destination type, zeros beyond k
  float* scale;      // [rows] when the destination is f16: what the product's columns are multiplied with
  int64_t nb1, nb2, nb3;
  int64_t n, b2, rows;  // rows = n * B2 * B3, numbered col + n * (i2 + b2 * i3)
  int32_t k, k_padded;
};

struct ScaleColumnsArgs {
  float* dst;          // [columns][m], dense
  const float* scale;  // [columns]
  int64_t m, columns;
};

struct GemmPointersArgs {
  uint8_t *a, *b, *c;                                            // first matrices
  uint8_t** pointers;                                            // [3][batch]: where each matrix of the batch starts
  int64_t a_stride2, a_stride3, b_stride2, b_stride3, c_stride;  // bytes
  int64_t b2, ratio2, ratio3, batch;
};

}  // namespace cudabk
