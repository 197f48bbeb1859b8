// Conversions between float, f16 and bf16, and packed half arithmetic. Half values travel as raw bits: cuda_fp16.h is
// not needed.
#pragma once

namespace cudabk {

__forceinline__ float bits_to_float(uint32_t bits) { return __uint_as_float(bits); }
__forceinline__ uint32_t float_bits(float v) { return __float_as_uint(v); }
__forceinline__ int round_to_int(float v) { return __float2int_rn(v); }
__forceinline__ int truncate_to_int(float v) { return __float2int_rz(v); }

__forceinline__ float to_float(f16 v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v.bits));
  return r;
}
__forceinline__ float to_float(bf16 v) { return bits_to_float(static_cast<uint32_t>(v.bits) << 16); }

__forceinline__ f16 to_f16(float v) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
}

// Nearest even by hand where there is no instruction; a NaN keeps its sign and becomes quiet.
__forceinline__ bf16 to_bf16(float v) {
  bf16 r;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
#else
  const uint32_t u = float_bits(v);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  r.bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
  return r;
}

// Two halves in one register, `lo` in the low bits. The PTX instruction names the high half first.
__forceinline__ uint32_t pack_f16(float lo, float hi) {
#if __CUDA_ARCH__ >= 800
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
#else
  return static_cast<uint32_t>(to_f16(lo).bits) | static_cast<uint32_t>(to_f16(hi).bits) << 16;
#endif
}
__forceinline__ uint32_t pack_bf16(float lo, float hi) {
#if __CUDA_ARCH__ >= 800
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
#else
  return static_cast<uint32_t>(to_bf16(lo).bits) | static_cast<uint32_t>(to_bf16(hi).bits) << 16;
#endif
}

// Packed f16 arithmetic, each result rounded once to nearest even.
__forceinline__ uint32_t f16x2_fma(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__forceinline__ uint32_t f16x2_mul(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__forceinline__ uint32_t f16x2_add(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__forceinline__ uint32_t f16x2_sub(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
// One half of a pair twice: operands of packed arithmetic take it without an instruction.
__forceinline__ uint32_t f16x2_low(uint32_t a) {
  uint32_t d;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {low, low};}" : "=r"(d) : "r"(a));
  return d;
}
__forceinline__ uint32_t f16x2_high(uint32_t a) {
  uint32_t d;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, high};}" : "=r"(d) : "r"(a));
  return d;
}

// Packed bf16: below sm_80 in float, where the product is exact and only the sum is rounded twice.
__forceinline__ uint32_t bf16x2_fma(uint32_t a, uint32_t b, uint32_t c) {
#if __CUDA_ARCH__ >= 800
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#else
  const float lo = __fmaf_rn(bits_to_float(a << 16), bits_to_float(b << 16), bits_to_float(c << 16));
  const float hi =
      __fmaf_rn(bits_to_float(a & 0xffff0000u), bits_to_float(b & 0xffff0000u), bits_to_float(c & 0xffff0000u));
  return pack_bf16(lo, hi);
#endif
}
// Adding -0 leaves every product as it is; a multiply instruction exists only from sm_90.
__forceinline__ uint32_t bf16x2_mul(uint32_t a, uint32_t b) { return bf16x2_fma(a, b, 0x80008000u); }

}  // namespace cudabk
