// Internal: decoders of single blocks, one per type, and loads of little-endian fields.
#pragma once

#include <cstdint>
#include <cstring>

#include "graph/half.h"

namespace cudabk::formats {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "block fields are read in place");

template <class T>
T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}
template <class T>
void store(uint8_t* p, T value) {
  std::memcpy(p, &value, sizeof(T));
}
inline float load_f16(const uint8_t* p) { return f16_to_f32(load<uint16_t>(p)); }
inline void store_f16(uint8_t* p, float value) { store(p, f32_to_f16(value)); }

// The low (half 0) or high (half 1) nibble.
inline int nibble(uint8_t byte, int half) { return half != 0 ? byte >> 4 : byte & 15; }

float e8m0_half(uint8_t code);   // 2^(code - 128): half the value of an mxfp4 scale code
float ue4m3_half(uint8_t code);  // half the value of an nvfp4 scale code
uint8_t encode_ue4m3(float x);

// b: one block; y: its block_elements decoded values.
using BlockDecoder = void (*)(const uint8_t* b, float* y);

void decode_q4_0(const uint8_t* b, float* y);
void decode_q4_1(const uint8_t* b, float* y);
void decode_q5_0(const uint8_t* b, float* y);
void decode_q5_1(const uint8_t* b, float* y);
void decode_q8_0(const uint8_t* b, float* y);
void decode_q8_1(const uint8_t* b, float* y);
void decode_iq4_nl(const uint8_t* b, float* y);
void decode_mxfp4(const uint8_t* b, float* y);
void decode_nvfp4(const uint8_t* b, float* y);
void decode_q1_0(const uint8_t* b, float* y);
void decode_q2_0(const uint8_t* b, float* y);
void decode_tq1_0(const uint8_t* b, float* y);
void decode_tq2_0(const uint8_t* b, float* y);

void decode_q2_k(const uint8_t* b, float* y);
void decode_q3_k(const uint8_t* b, float* y);
void decode_q4_k(const uint8_t* b, float* y);
void decode_q5_k(const uint8_t* b, float* y);
void decode_q6_k(const uint8_t* b, float* y);
void decode_q8_k(const uint8_t* b, float* y);

void decode_iq1_s(const uint8_t* b, float* y);
void decode_iq1_m(const uint8_t* b, float* y);
void decode_iq2_xxs(const uint8_t* b, float* y);
void decode_iq2_xs(const uint8_t* b, float* y);
void decode_iq2_s(const uint8_t* b, float* y);
void decode_iq3_xxs(const uint8_t* b, float* y);
void decode_iq3_s(const uint8_t* b, float* y);
void decode_iq4_xs(const uint8_t* b, float* y);

}  // namespace cudabk::formats
