// Float element types (weights or results of earlier kernels): loads of one or of 16 bytes' worth of elements, widened
// to f32.
#pragma once

#include "formats/dtypes.h"
#include "platform/platform.h"

namespace cudabk {

// Elements in 16 bytes: 4 of f32, 8 of f16 and bf16.
template <DType T>
constexpr int kElementsPer16Bytes = 16 / block_bytes(T);

template <DType T>
float load_float(const uint8_t* p) {
  if constexpr (T == DType::f32) {
    return load_fresh(reinterpret_cast<const float*>(p));
  } else if constexpr (T == DType::f16) {
    return to_float(f16{load_fresh(reinterpret_cast<const uint16_t*>(p))});
  } else {
    return to_float(bf16{load_fresh(reinterpret_cast<const uint16_t*>(p))});
  }
}

template <DType T>
float low_half(uint32_t word) {
  if constexpr (T == DType::f16) {
    return to_float(f16{static_cast<uint16_t>(word & 0xffff)});
  } else {
    return bits_to_float(word << 16);
  }
}
template <DType T>
float high_half(uint32_t word) {
  if constexpr (T == DType::f16) {
    return to_float(f16{static_cast<uint16_t>(word >> 16)});
  } else {
    return bits_to_float(word & 0xffff0000u);
  }
}

// Widens 16 raw bytes of T.
template <DType T>
void widen(u32x4 raw, float (&out)[kElementsPer16Bytes<T>]) {
  const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  for (int i = 0; i < 4; ++i) {
    if constexpr (T == DType::f32) {
      out[i] = bits_to_float(words[i]);
    } else {
      out[2 * i] = low_half<T>(words[i]);
      out[2 * i + 1] = high_half<T>(words[i]);
    }
  }
}

// N consecutive elements from p, 16-byte aligned; N a multiple of the elements in 16 bytes.
template <DType T, int N>
void load_floats(const uint8_t* p, float (&out)[N]) {
  constexpr int kPer = kElementsPer16Bytes<T>;
  static_assert(N % kPer == 0);
  for (int i = 0; i < N / kPer; ++i) {
    float part[kPer];
    widen<T>(load_fresh(reinterpret_cast<const u32x4*>(p) + i), part);
    for (int j = 0; j < kPer; ++j) {
      out[i * kPer + j] = part[j];
    }
  }
}

}  // namespace cudabk
