// What products by warp groups make of packed weights, without their products.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/dtypes.h"

namespace cudabk::test {

// The values of one strip, [16][256 * units], brought back out of f16's range. factors: of its rows.
std::vector<float> tile_values(DType type, const std::vector<uint8_t>& strip, const std::vector<float>& factors,
                               int64_t units);

}  // namespace cudabk::test
