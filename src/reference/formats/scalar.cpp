// Scale bytes of the fp4 formats.
#include <algorithm>
#include <cmath>

#include "reference/formats/blocks.h"

namespace cudabk::formats {

float e8m0_half(uint8_t code) { return std::ldexp(1.0f, code - 128); }

float ue4m3_half(uint8_t code) {
  if (code == 0 || code == 0x7F) {
    return 0;
  }
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 0) {
    return static_cast<float>(mantissa) * 0x1p-10f;
  }
  return std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

uint8_t encode_ue4m3(float x) {
  constexpr uint8_t kLargest = 0x7E;
  if (!(x > 0)) {
    return 0;
  }
  x = std::min(x, 448.0f);
  int exponent = std::ilogb(x);
  if (exponent <= -7) {
    const int mantissa = static_cast<int>(x * 512.0f + 0.5f);  // NOLINT(bugprone-incorrect-roundings): the rule
    return static_cast<uint8_t>(std::min(7, mantissa));
  }
  if (exponent >= 8) {
    return kLargest;
  }
  const uint32_t fraction = load<uint32_t>(reinterpret_cast<const uint8_t*>(&x)) & 0x7FFFFF;
  uint32_t mantissa = (fraction >> 20) + ((fraction >> 19) & 1);
  if (mantissa == 8) {
    mantissa = 0;
    if (++exponent >= 8) {
      return kLargest;
    }
  }
  return static_cast<uint8_t>((static_cast<uint32_t>(exponent + 7) << 3) | mantissa);
}

}  // namespace cudabk::formats
