// Float weights times a few columns of float activations.
#pragma once

#include "mmvq/args.h"

namespace cudabk {

struct MmvfArgs {
  const uint8_t* weights;  // [k, m, A2, A3] f32, f16 or bf16, rows dense; byte strides below
  const uint8_t* x;        // [k, n, B2, B3] f32 or f16, rows dense; byte strides below
  float* dst;              // [m, n, batch], dense
  EpilogueArgs epilogue;
  BatchArgs batch;
  int64_t row_stride, stride2, stride3;        // weights
  int64_t x_col_stride, x_stride2, x_stride3;  // activations
  int32_t m, n, k;
};

}  // namespace cudabk
