// The formats that kernels write.
#pragma once

#include "formats/encode.h"
#include "formats/lookup.h"

namespace cudabk {

template <DType T>
requires(T == DType::q4_0) struct Encode<T> {
  static constexpr int kBytes = 18;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    const float d = divide(group_extreme(x, part), -8.0f);
    if (part == 0) {
      put_half(block, d);
    }
    put_nibbles(block + 2, symmetric_codes<8>(x, inverse_or_zero(d)), part);
  }
};

template <DType T>
requires(T == DType::q4_1) struct Encode<T> {
  static constexpr int kBytes = 20;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    const LowHigh range = group_range(x);
    const float d = divide(add_rounded(range.high, -range.low), 15.0f);
    if (part == 0) {
      put_half(block, d);
      put_half(block + 2, range.low);
    }
    put_nibbles(block + 4, offset_codes<15>(x, range.low, inverse_or_zero(d)), part);
  }
};

template <DType T>
requires(T == DType::q5_0) struct Encode<T> {
  static constexpr int kBytes = 22;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    const float d = divide(group_extreme(x, part), -16.0f);
    if (part == 0) {
      put_half(block, d);
    }
    const FourCodes codes = symmetric_codes<16>(x, inverse_or_zero(d));
    put_fifth_bits(block + 2, codes, part);
    put_nibbles(block + 6, codes, part);
  }
};

template <DType T>
requires(T == DType::q5_1) struct Encode<T> {
  static constexpr int kBytes = 24;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    const LowHigh range = group_range(x);
    const float d = divide(add_rounded(range.high, -range.low), 31.0f);
    if (part == 0) {
      put_half(block, d);
      put_half(block + 2, range.low);
    }
    const FourCodes codes = offset_codes<31>(x, range.low, inverse_or_zero(d));
    put_fifth_bits(block + 4, codes, part);
    put_nibbles(block + 8, codes, part);
  }
};

template <DType T>
requires(T == DType::q8_0) struct Encode<T> {
  static constexpr int kBytes = 34;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    const float d = divide(group_magnitude(x), 127.0f);
    if (part == 0) {
      put_half(block, d);
    }
    const float inverse = inverse_or_zero(d);
    FourCodes codes;
    for (int i = 0; i < kEncodeElements; ++i) {
      codes.v[i] = round_away(mul_rounded(x.v[i], inverse));
    }
    put_word(block + 2 + 4 * part, pack_bytes(codes, 0xff));
  }
};

// The level nearest to y, the larger one on ties: as many levels lie below as midpoints between neighbours do. Near a
// midpoint both distances are exact, so that comparing y with it decides as comparing them does.
inline int nearest_iq4nl(float y) {
  constexpr Levels<16> kLevels = iq4nl_levels();
  int code = 0;
  for (int i = 0; i < 15; ++i) {
    code += y >= 0.5f * static_cast<float>(kLevels.values[i] + kLevels.values[i + 1]) ? 1 : 0;
  }
  return code;
}

// The scale is refitted to the codes by least squares with weights x^2. The sum runs over each lane's elements and then
// over the lanes: the f16 scale can differ from the reference by its last bit.
template <DType T>
requires(T == DType::iq4_nl) struct Encode<T> {
  static constexpr int kBytes = 18;
  static void encode(const FourFloats& x, int part, uint8_t* block) {
    constexpr float kZeroBlock = 1e-15f;  // format: smaller blocks are stored as zero
    const float extreme = group_extreme(x, part);
    const float first_scale = divide(extreme, -127.0f);
    const float inverse = inverse_or_zero(first_scale);
    const bool zero = abs_f(extreme) < kZeroBlock;
    FourCodes codes;
    for (int i = 0; i < kEncodeElements; ++i) {
      codes.v[i] = zero ? 8 : nearest_iq4nl(mul_rounded(x.v[i], inverse));
    }
    const uint32_t numbers = pack_bytes(codes, 15);
    const uint32_t levels = look_up_bytes(iq4nl_levels(), numbers).x;
    float numerator = 0.0f, denominator = 0.0f;
    for (int i = 0; i < kEncodeElements; ++i) {
      const float level = static_cast<float>(static_cast<int8_t>(levels >> (8 * i)));
      const float weighted = mul_rounded(mul_rounded(x.v[i], x.v[i]), level);
      numerator = add_rounded(numerator, mul_rounded(weighted, x.v[i]));
      denominator = add_rounded(denominator, mul_rounded(weighted, level));
    }
    numerator = group_sum(numerator);
    denominator = group_sum(denominator);
    if (part == 0) {
      put_half(block, zero ? 0.0f : denominator != 0.0f ? divide(numerator, denominator) : first_scale);
    }
    put_nibbles(block + 2, codes, part);
  }
};

}  // namespace cudabk
