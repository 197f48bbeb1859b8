// Half-precision arithmetic on the host, written without the project's own code.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cudabk {

inline uint16_t f16_bits(double v) { return std::bit_cast<uint16_t>(static_cast<_Float16>(v)); }
inline float f16_value(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline float bf16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// Nearest even; no NaN.
inline uint16_t bf16_bits(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
inline uint32_t pair(uint16_t lo, uint16_t hi) { return lo | uint32_t{hi} << 16; }

}  // namespace cudabk
