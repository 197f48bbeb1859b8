#pragma once

#include "common/rows_args.h"

namespace cudabk {

// y = x / sqrt(mean(x^2) + eps) [* gain] per row. Strides in elements, dim 0 dense; y may be x with equal strides.
struct RmsNormArgs {
  const float* x = nullptr;
  const float* gain = nullptr;  // [cols, gain_ne1, gain_ne2, gain_ne3], rows repeat by modulo; null without a gain
  float* y = nullptr;
  int64_t cols = 0;
  int64_t rows = 0;  // ne1 * ne2 * ne3
  int64_t ne1 = 1, ne2 = 1;
  RowStrides x_strides, gain_strides, y_strides;
  int64_t gain_ne1 = 1, gain_ne2 = 1, gain_ne3 = 1;
  float eps = 0;
};

}  // namespace cudabk
