// Encoders of the simple types. Each product is rounded before a following addition: the target is compiled without
// contraction, and the order of operations is that of the format rules.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "reference/formats/blocks.h"
#include "reference/formats/tables.h"
#include "reference/reference.h"

namespace cudabk {
namespace {
using namespace formats;

using BlockEncoder = void (*)(const float* x, uint8_t* b);

// Largest magnitude, and the first element that has it (+0 when all are zero).
struct Extreme {
  float magnitude = 0;
  float value = 0;
};
Extreme find_extreme(const float* x, int n) {
  Extreme e;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > e.magnitude) {
      e = {std::fabs(x[i]), x[i]};
    }
  }
  return e;
}

struct Range {
  float low;
  float high;
};
Range find_range(const float* x, int n) {
  Range r{x[0], x[0]};
  for (int i = 1; i < n; ++i) {
    r.low = x[i] < r.low ? x[i] : r.low;
    r.high = x[i] > r.high ? x[i] : r.high;
  }
  return r;
}

float inverse(float d) { return d != 0 ? 1.0f / d : 0.0f; }

// Low nibbles hold the first half of a 32-element block, high nibbles the second.
void pack_nibbles(const std::array<int, 32>& codes, uint8_t* b) {
  for (int i = 0; i < 16; ++i) {
    b[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  }
}
uint32_t fifth_bits(const std::array<int, 32>& codes) {
  uint32_t high = 0;
  for (int i = 0; i < 32; ++i) {
    high |= static_cast<uint32_t>((codes[i] >> 4) & 1) << i;
  }
  return high;
}

// Codes of a symmetric format whose first extreme gets code 0; `half` is the code of zero.
std::array<int, 32> symmetric_codes(const float* x, float d, int half) {
  const float id = inverse(d);
  std::array<int, 32> codes;
  for (int i = 0; i < 32; ++i) {
    const float scaled = x[i] * id;
    codes[i] = std::min(2 * half - 1, static_cast<int>(scaled + (static_cast<float>(half) + 0.5f)));
  }
  return codes;
}
std::array<int, 32> offset_codes(const float* x, float low, float d, int top) {
  const float id = inverse(d);
  std::array<int, 32> codes;
  for (int i = 0; i < 32; ++i) {
    const float scaled = (x[i] - low) * id;
    // The rule truncates after adding a half; lround differs where the sum is rounded.
    codes[i] = std::min(top, static_cast<int>(scaled + 0.5f));  // NOLINT(bugprone-incorrect-roundings)
  }
  return codes;
}

void encode_q4_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 32).value / -8.0f;
  store_f16(b, d);
  pack_nibbles(symmetric_codes(x, d, 8), b + 2);
}

void encode_q4_1(const float* x, uint8_t* b) {
  const Range r = find_range(x, 32);
  const float d = (r.high - r.low) / 15.0f;
  store_f16(b, d);
  store_f16(b + 2, r.low);
  pack_nibbles(offset_codes(x, r.low, d, 15), b + 4);
}

void encode_q5_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 32).value / -16.0f;
  const auto codes = symmetric_codes(x, d, 16);
  store_f16(b, d);
  store(b + 2, fifth_bits(codes));
  pack_nibbles(codes, b + 6);
}

void encode_q5_1(const float* x, uint8_t* b) {
  const Range r = find_range(x, 32);
  const float d = (r.high - r.low) / 31.0f;
  const auto codes = offset_codes(x, r.low, d, 31);
  store_f16(b, d);
  store_f16(b + 2, r.low);
  store(b + 4, fifth_bits(codes));
  pack_nibbles(codes, b + 8);
}

void encode_q8_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 32).magnitude / 127.0f;
  const float id = inverse(d);
  store_f16(b, d);
  for (int i = 0; i < 32; ++i) {
    b[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * id)));
  }
}

// The host variant: the sum is that of the codes.
void encode_q8_1(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 32).magnitude / 127.0f;
  const float id = inverse(d);
  int sum = 0;
  for (int i = 0; i < 32; ++i) {
    const int code = static_cast<int>(std::round(x[i] * id));
    b[4 + i] = static_cast<uint8_t>(static_cast<int8_t>(code));
    sum += code;
  }
  store_f16(b, d);
  store_f16(b + 2, d * static_cast<float>(sum));
}

// The nearest entry of the ascending table; a tie goes to the larger value.
int nearest_iq4nl(float y) {
  if (y <= static_cast<float>(kIq4nlValues[0])) {
    return 0;
  }
  if (y >= static_cast<float>(kIq4nlValues[15])) {
    return 15;
  }
  int n = 0;
  while (static_cast<float>(kIq4nlValues[n + 1]) <= y) {
    ++n;
  }
  const float below = y - static_cast<float>(kIq4nlValues[n]);
  const float above = static_cast<float>(kIq4nlValues[n + 1]) - y;
  return below < above ? n : n + 1;
}

void encode_iq4_nl(const float* x, uint8_t* b) {
  constexpr float kZeroBlock = 1e-15f;  // format: smaller blocks are stored as zero
  const Extreme extreme = find_extreme(x, 32);
  if (extreme.magnitude < kZeroBlock) {
    std::fill_n(b, 2, uint8_t{0});
    std::fill_n(b + 2, 16, uint8_t{0x88});
    return;
  }
  const float d0 = extreme.value / -127.0f;
  const float id = inverse(d0);
  std::array<int, 32> codes;
  float numerator = 0;
  float denominator = 0;
  for (int i = 0; i < 32; ++i) {
    codes[i] = nearest_iq4nl(x[i] * id);
    const float value = static_cast<float>(kIq4nlValues[codes[i]]);
    const float weight = x[i] * x[i];
    numerator += (weight * value) * x[i];
    denominator += (weight * value) * value;
  }
  store_f16(b, denominator != 0 ? numerator / denominator : d0);
  pack_nibbles(codes, b + 2);
}

// The code whose value is nearest to x, the lowest one on ties.
int nearest_fp4(float x, float d) {
  int best = 0;
  float best_error = std::fabs(static_cast<float>(kFp4Values[0]) * d - x);
  for (int n = 1; n < 16; ++n) {
    const float error = std::fabs(static_cast<float>(kFp4Values[n]) * d - x);
    if (error < best_error) {
      best = n;
      best_error = error;
    }
  }
  return best;
}

void encode_mxfp4(const float* x, uint8_t* b) {
  const float magnitude = find_extreme(x, 32).magnitude;
  const int code = magnitude > 0 ? std::clamp(static_cast<int>(std::floor(std::log2(magnitude))) + 125, 0, 254) : 0;
  b[0] = static_cast<uint8_t>(code);
  std::array<int, 32> codes;
  for (int i = 0; i < 32; ++i) {
    codes[i] = nearest_fp4(x[i], e8m0_half(b[0]));
  }
  pack_nibbles(codes, b + 1);
}

void encode_nvfp4(const float* x, uint8_t* b) {
  for (int t = 0; t < 4; ++t) {
    const float* group = x + 16 * t;
    b[t] = encode_ue4m3(find_extreme(group, 16).magnitude / 6.0f);
    const float d = ue4m3_half(b[t]);
    for (int r = 0; r < 8; ++r) {
      b[4 + 8 * t + r] = static_cast<uint8_t>(nearest_fp4(group[r], d) | nearest_fp4(group[r + 8], d) << 4);
    }
  }
}

void encode_q1_0(const float* x, uint8_t* b) {
  float sum = 0;
  std::fill_n(b, 18, uint8_t{0});
  for (int i = 0; i < 128; ++i) {
    sum += std::fabs(x[i]);
    b[2 + i / 8] = static_cast<uint8_t>(b[2 + i / 8] | (x[i] >= 0 ? 1 : 0) << (i % 8));
  }
  store_f16(b, sum / 128.0f);
}

void encode_q2_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 64).magnitude;
  const float id = inverse(d);
  std::fill_n(b, 18, uint8_t{0});
  store_f16(b, d);
  for (int i = 0; i < 64; ++i) {
    const int code = std::clamp(static_cast<int>(std::round(x[i] * id)) + 1, 0, 3);
    b[2 + i / 4] = static_cast<uint8_t>(b[2 + i / 4] | code << (2 * (i % 4)));
  }
}

void encode_q8_k(const float* x, uint8_t* b) {
  const Extreme extreme = find_extreme(x, 256);
  std::fill_n(b, 292, uint8_t{0});
  if (extreme.magnitude == 0) {
    return;
  }
  const float z = -127.0f / extreme.value;
  std::array<int, 16> sums{};
  for (int i = 0; i < 256; ++i) {
    const int code = std::min(127, static_cast<int>(std::nearbyint(x[i] * z)));
    b[4 + i] = static_cast<uint8_t>(static_cast<int8_t>(code));
    sums[i / 16] += code;
  }
  for (int t = 0; t < 16; ++t) {
    store(b + 260 + 2 * t, static_cast<int16_t>(sums[t]));
  }
  store(b, 1.0f / z);
}

void encode_tq2_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 256).magnitude;
  const float id = inverse(d);
  std::fill_n(b, 66, uint8_t{0});
  for (int i = 0; i < 256; ++i) {
    const int code = static_cast<int>(std::round(x[i] * id)) + 1;
    uint8_t& byte = b[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | code << (2 * ((i / 32) % 4)));
  }
  store_f16(b + 64, d);
}

void encode_tq1_0(const float* x, uint8_t* b) {
  const float d = find_extreme(x, 256).magnitude;
  const float id = inverse(d);
  // `count` bytes of up to five trits; trit m of byte i is element first + m * count + i.
  const auto pack = [&](int first, int count, int trits, uint8_t* out) {
    for (int i = 0; i < count; ++i) {
      int number = 0;
      for (int m = 0; m < 5; ++m) {
        const int trit = m < trits ? static_cast<int>(std::round(x[first + m * count + i] * id)) + 1 : 0;
        number = 3 * number + trit;
      }
      out[i] = static_cast<uint8_t>((256 * number + 242) / 243);
    }
  };
  pack(0, 32, 5, b);
  pack(160, 16, 5, b + 32);
  pack(240, 4, 4, b + 48);
  store_f16(b + 52, d);
}

void encode_f32(const float* x, uint8_t* b) { store(b, *x); }
void encode_f16(const float* x, uint8_t* b) { store_f16(b, *x); }
void encode_bf16(const float* x, uint8_t* b) { store(b, f32_to_bf16(*x)); }

// nullptr: the type has no encoder here.
BlockEncoder block_encoder(DType type) {
  switch (type) {
    case DType::f32:
      return encode_f32;
    case DType::f16:
      return encode_f16;
    case DType::bf16:
      return encode_bf16;
    case DType::q4_0:
      return encode_q4_0;
    case DType::q4_1:
      return encode_q4_1;
    case DType::q5_0:
      return encode_q5_0;
    case DType::q5_1:
      return encode_q5_1;
    case DType::q8_0:
      return encode_q8_0;
    case DType::q8_1:
      return encode_q8_1;
    case DType::iq4_nl:
      return encode_iq4_nl;
    case DType::mxfp4:
      return encode_mxfp4;
    case DType::nvfp4:
      return encode_nvfp4;
    case DType::q1_0:
      return encode_q1_0;
    case DType::q2_0:
      return encode_q2_0;
    case DType::q8_K:
      return encode_q8_k;
    case DType::tq1_0:
      return encode_tq1_0;
    case DType::tq2_0:
      return encode_tq2_0;
    default:
      return nullptr;
  }
}

}  // namespace

bool has_encoder(DType type) { return block_encoder(type) != nullptr; }

Status encode_row(DType type, const float* src, int64_t elements, std::byte* row) {
  const BlockEncoder encode = block_encoder(type);
  if (encode == nullptr) {
    return unsupported(fmt::format("{} has no encoder here", dtype_name(type)));
  }
  auto* dst = reinterpret_cast<uint8_t*>(row);
  for (int64_t i = 0; i < elements; i += block_elements(type), dst += block_bytes(type)) {
    encode(src + i, dst);
  }
  return success();
}

}  // namespace cudabk
