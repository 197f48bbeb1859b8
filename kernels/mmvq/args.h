// Quantized weights times a few columns of quantized activations.
#pragma once

#include "platform/types.h"
#include "quantize/args.h"

namespace cudabk {

// How a product walks its batch: slice (i2, i3) of the result uses slice (i2 / ratio2, i3 / ratio3) of the weights.
struct BatchArgs {
  int32_t batch;  // b2 * b3
  int32_t b2;
  int32_t ratio2, ratio3;
};

// What is added to a product before it is stored; addend null: nothing. Strides in elements, 0 to broadcast.
struct EpilogueArgs {
  const float* addend;  // dst row i, column j of batch b adds addend[i + j * column_stride + b * batch_stride]
  int64_t column_stride, batch_stride;
};

struct MmvqArgs {
  const uint8_t* weights;         // [k, m, A2, A3], blocks; byte strides below
  const int8_t* codes;            // [batch][n][k]
  const ActivationScale* scales;  // [batch][n][k / 32]
  float* dst;                     // [m, n, batch], dense
  EpilogueArgs epilogue;
  BatchArgs batch;
  int64_t row_stride, stride2, stride3;  // weights, bytes
  int32_t m, n, k;
};

// Shared memory of a block: one partial sum per warp, row and column.
constexpr int vector_shared_bytes(int warps, int rows, int cols) { return warps * rows * cols * 4; }

}  // namespace cudabk
