// Conversions, integer and floating-point primitives of the emulated GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "platform/types.h"

namespace cudabk {

inline float bits_to_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t float_bits(float value) { return std::bit_cast<uint32_t>(value); }

// Exact. The exponent is moved by a multiplication, which also normalizes subnormals; 31 becomes inf or NaN.
inline float to_float(f16 h) {
  const uint32_t sign = (h.bits & 0x8000u) << 16;
  const uint32_t magnitude = float_bits(bits_to_float((h.bits & 0x7fffu) << 13) * 0x1p112f);
  const uint32_t special = (h.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return bits_to_float(magnitude | special | sign);
}

inline float to_float(bf16 b) { return bits_to_float(uint32_t{b.bits} << 16); }

// Nearest even; |x| >= 65520 becomes inf, NaN becomes 0x7fff (as on the GPU).
inline f16 to_f16(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {0x7fff};
  }
  if (magnitude >= 0x47800000u) {  // 65536
    return {static_cast<uint16_t>(sign | 0x7c00u)};
  }
  if (magnitude < 0x38800000u) {  // 2^-14: the sum with 0.5 has its last bit at 2^-24, so the addition rounds
    return {static_cast<uint16_t>(sign | (float_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u))};
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13))};
}

// Nearest even; NaN becomes 0x7fff (as on the GPU).
inline bf16 to_bf16(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {0x7fff};
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline uint32_t pack_f16(float lo, float hi) { return to_f16(lo).bits | uint32_t{to_f16(hi).bits} << 16; }
inline uint32_t pack_bf16(float lo, float hi) { return to_bf16(lo).bits | uint32_t{to_bf16(hi).bits} << 16; }

// Nearest even; saturates, NaN becomes 0 (as cvt.rni.s32.f32).
inline int round_to_int(float value) {
  if (value != value) {
    return 0;
  }
  if (value >= 0x1p31f) {
    return INT32_MAX;
  }
  if (value < -0x1p31f) {
    return INT32_MIN;
  }
#ifdef __SSE2__
  return _mm_cvtss_si32(_mm_set_ss(value));
#else
  return static_cast<int>(std::nearbyint(value));
#endif
}

// Toward zero; saturates, NaN becomes 0 (as cvt.rzi.s32.f32).
inline int truncate_to_int(float value) {
  if (value != value) {
    return 0;
  }
  return value >= 0x1p31f ? INT32_MAX : value < -0x1p31f ? INT32_MIN : static_cast<int>(value);
}

inline int dp4a(int a, int b, int c) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<int8_t>(static_cast<uint32_t>(a) >> i) * static_cast<int8_t>(static_cast<uint32_t>(b) >> i);
  }
  return static_cast<int>(static_cast<uint32_t>(c) + static_cast<uint32_t>(sum));
}

inline int dp4a_us(uint32_t a, int b, int c) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<uint8_t>(a >> i) * static_cast<int8_t>(static_cast<uint32_t>(b) >> i);
  }
  return static_cast<int>(static_cast<uint32_t>(c) + static_cast<uint32_t>(sum));
}

// PRMT: byte i of the result is byte (selector nibble i & 7) of {b, a}; with bit 3 of the nibble its sign bit, eight
// times.
inline uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> (4 * i);
    const uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (nibble & 7))) & 0xffu;
    const uint32_t chosen = (nibble & 8) != 0 ? ((byte >> 7) * 0xffu) : byte;
    result |= chosen << (8 * i);
  }
  return result;
}

inline uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) { return byte_perm(a, b, selector); }
inline uint32_t in_register(uint32_t v) { return v; }
inline int opaque(int v) { return v; }
inline uint32_t and_or(uint32_t x, uint32_t mask, uint32_t bits) { return (x & mask) | bits; }
inline uint32_t funnel_shift_right(uint32_t lo, uint32_t hi, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{hi} << 32 | lo) >> (n & 31));
}
inline uint32_t count_bits(uint32_t v) { return static_cast<uint32_t>(std::popcount(v)); }

// Computed in double: differs from a fused operation only where rounding twice does.
inline float fma_f(float a, float b, float c) { return static_cast<float>(static_cast<double>(a) * b + c); }
inline float divide(float a, float b) { return a / b; }
inline float add_rounded(float a, float b) { return a + b; }
inline float mul_rounded(float a, float b) { return a * b; }
inline float abs_f(float a) { return std::fabs(a); }
inline float max_f(float a, float b) { return a != a || b > a ? b : a; }  // a NaN gives way to a number
inline float min_f(float a, float b) { return a != a || b < a ? b : a; }
inline float inverse_sqrt(float a) { return 1.0f / std::sqrt(a); }
inline float exp_f(float a) { return std::exp(a); }
inline float fast_exp(float a) { return std::exp(a); }
inline bool is_finite(float a) { return (float_bits(a) & 0x7f800000u) != 0x7f800000u; }

namespace host {

// a + b in the next wider format, rounded to odd, so that a later rounding to nearest is right.
inline float add_to_odd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum)) {
    return static_cast<float>(sum);
  }
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  if (error != 0 && (std::bit_cast<uint64_t>(sum) & 1) == 0) {
    const bool away = (error > 0) == (sum > 0);
    sum = std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + (away ? 1 : -1));
  }
  float narrow = static_cast<float>(sum);
  if (static_cast<double>(narrow) != sum && std::isfinite(narrow) && (float_bits(narrow) & 1) == 0) {
    const bool away = (std::fabs(sum) > std::fabs(static_cast<double>(narrow)));
    narrow = bits_to_float(float_bits(narrow) + (away ? 1 : -1));
  }
  return narrow;
}

inline float low_f16(uint32_t v) { return to_float(f16{static_cast<uint16_t>(v)}); }
inline float high_f16(uint32_t v) { return to_float(f16{static_cast<uint16_t>(v >> 16)}); }
inline float low_bf16(uint32_t v) { return bits_to_float(v << 16); }
inline float high_bf16(uint32_t v) { return bits_to_float(v & 0xffff0000u); }

}  // namespace host

// Packed halves: each result is rounded once. The product of two halves is exact in float.
inline uint32_t f16x2_fma(uint32_t a, uint32_t b, uint32_t c) {
  return pack_f16(host::add_to_odd(host::low_f16(a) * host::low_f16(b), host::low_f16(c)),
                  host::add_to_odd(host::high_f16(a) * host::high_f16(b), host::high_f16(c)));
}
inline uint32_t f16x2_mul(uint32_t a, uint32_t b) {
  return pack_f16(host::low_f16(a) * host::low_f16(b), host::high_f16(a) * host::high_f16(b));
}
inline uint32_t f16x2_add(uint32_t a, uint32_t b) {
  return pack_f16(host::add_to_odd(host::low_f16(a), host::low_f16(b)),
                  host::add_to_odd(host::high_f16(a), host::high_f16(b)));
}
inline uint32_t f16x2_sub(uint32_t a, uint32_t b) {
  return pack_f16(host::add_to_odd(host::low_f16(a), -host::low_f16(b)),
                  host::add_to_odd(host::high_f16(a), -host::high_f16(b)));
}
inline uint32_t f16x2_low(uint32_t a) { return (a & 0xffff) * 0x10001u; }
inline uint32_t f16x2_high(uint32_t a) { return (a >> 16) * 0x10001u; }
inline uint32_t bf16x2_fma(uint32_t a, uint32_t b, uint32_t c) {
  return pack_bf16(host::add_to_odd(double{host::low_bf16(a)} * host::low_bf16(b), host::low_bf16(c)),
                   host::add_to_odd(double{host::high_bf16(a)} * host::high_bf16(b), host::high_bf16(c)));
}
inline uint32_t bf16x2_mul(uint32_t a, uint32_t b) {
  return pack_bf16(host::low_bf16(a) * host::low_bf16(b), host::high_bf16(a) * host::high_bf16(b));
}

}  // namespace cudabk
