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
      return {1, 1, 32};
    case DType::q8_0:
      return {2, 1, 16};
    case DType::q4_K:
      return {4, 2, 32};
    case DType::q6_K:
      return {8, 2, 16};
    default:
      return {1, 1, 16};
  }
}

}  // namespace cudabk
