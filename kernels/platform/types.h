// Fixed-width integers and storage types for kernels, argument structs and host code alike.
// Includes no system header: under NVRTC <cstdint> costs time or fails.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#else
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#endif

namespace cudabk {

// Storage of IEEE binary16 and bfloat16. Arithmetic happens in float; conversions are platform primitives.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

}  // namespace cudabk
