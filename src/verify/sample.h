// Which elements of a large result are checked.
#pragma once

#include <cstdint>

#include "reference/reference.h"

namespace cudabk {

inline constexpr int64_t kFullCheckElements = 1 << 16;  // results up to this size are checked whole by default

// The whole of a result of at most `full_threshold` elements. Otherwise first and last indices, both sides of tile
// edges (multiples of 8, 16, 64, 128), and 64 random indices of dim 0 by 16 of dim 1; up to four slices of the outer
// dims. Sorted, without repeats; depends on the shape and the seed only.
Region sample_region(const Tensor& t, uint64_t seed, int64_t full_threshold = kFullCheckElements);

}  // namespace cudabk
