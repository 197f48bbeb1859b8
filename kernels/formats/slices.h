// How each weight format is cut into the pieces threads work on. Plain C++, read by kernels and by lowering.
//   A slice is what one thread takes at a time: one of `parts` parts of a block, made of `runs` runs. A run is 16 or 32
//   consecutive elements that start on a multiple of their length and share one scale.
#pragma once

#include "formats/dtypes.h"

namespace cudabk {

struct SliceShape {
  int parts, runs, run_length;

  constexpr int elements() const { return runs * run_length; }  // of a slice
  constexpr int chunks() const { return elements() / 16; }      // of 16 elements
};

constexpr SliceShape slice_shape(DType type) {
  switch (type) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::iq4_nl:
    case DType::mxfp4:
      return {1, 1, 32};
    case DType::q8_0:
      return {2, 1, 16};
    case DType::q2_K:
    case DType::q3_K:
      return {4, 4, 16};
    case DType::q4_K:
      return {4, 2, 32};
    case DType::q5_K:
    case DType::q6_K:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq1_m:
      return {8, 2, 16};
    case DType::iq4_xs:
    case DType::iq2_xxs:
    case DType::iq3_xxs:
    case DType::iq3_s:
    case DType::iq1_s:
      return {8, 1, 32};
    default:
      return {0, 1, 16};
  }
}

// Quantized types with a decoder for kernels: a Format<T> in formats/all.h.
constexpr bool has_device_format(DType type) { return slice_shape(type).parts > 0; }

// Consecutive elements, from a multiple of their number on, that whole slices make up: where the runs of a slice lie
// apart, all slices that interleave.
constexpr int slice_span(DType type) {
  return type == DType::q2_K || type == DType::q3_K || type == DType::q6_K ? 128 : 64;
}

}  // namespace cudabk
