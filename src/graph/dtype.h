// Host-side helpers over the dtype table of kernels/formats.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "formats/dtypes.h"

namespace cudabk {

inline std::string_view dtype_name(DType type) { return dtype_traits(type).name; }

// Case-insensitive; the error lists all names.
Result<DType> parse_dtype(std::string_view name);

// Bytes of a row of `elements` (a multiple of the block length).
constexpr int64_t row_bytes(DType type, int64_t elements) {
  return elements / block_elements(type) * block_bytes(type);
}

}  // namespace cudabk
