// Host conversions of the two 16-bit float types. Bit patterns, little-endian in memory.
#pragma once

#include <cstdint>

namespace cudabk {

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);  // nearest, ties to even; too large becomes infinity; NaN stays NaN, sign kept
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);  // nearest, ties to even; NaN stays NaN, sign kept

}  // namespace cudabk
