// Super-blocks of 256 elements with scales per group of 16 or 32.
#include "reference/formats/blocks.h"
#include "reference/formats/tables.h"

namespace cudabk::formats {
namespace {

// Eight scales and eight minimums of six bits in twelve bytes (q4_K, q5_K).
struct ScaleMin {
  int scale;
  int min;
};
ScaleMin unpack_scale_min(const uint8_t* s, int group) {
  if (group < 4) {
    return {s[group] & 63, s[group + 4] & 63};
  }
  return {(s[group + 4] & 15) | (s[group - 4] >> 6) << 4, (s[group + 4] >> 4) | (s[group] >> 6) << 4};
}

}  // namespace

void decode_q2_k(const uint8_t* b, float* y) {
  const float d = load_f16(b + 80);
  const float dmin = load_f16(b + 82);
  for (int t = 0; t < 16; ++t) {
    const float scale = d * static_cast<float>(b[t] & 15);
    const float min = dmin * static_cast<float>(b[t] >> 4);
    for (int i = 16 * t; i < 16 * t + 16; ++i) {
      const int code = (b[16 + 32 * (i / 128) + i % 32] >> (2 * ((i / 32) % 4))) & 3;
      y[i] = scale * static_cast<float>(code) - min;
    }
  }
}

void decode_q3_k(const uint8_t* b, float* y) {
  const float d = load_f16(b + 108);
  for (int t = 0; t < 16; ++t) {
    const int low_bits = nibble(b[96 + t % 8], t / 8);
    const int high_bits = (b[104 + t % 4] >> (2 * (t / 4))) & 3;
    const float scale = d * static_cast<float>((low_bits | high_bits << 4) - 32);
    for (int i = 16 * t; i < 16 * t + 16; ++i) {
      const int low = (b[32 + 32 * (i / 128) + i % 32] >> (2 * ((i / 32) % 4))) & 3;
      const int high = (b[i % 32] >> (i / 32)) & 1;
      y[i] = scale * static_cast<float>(low + 4 * high - 4);
    }
  }
}

// q4_k and q5_k: scales and mins at byte 4, then q5_k's fifth bits, then the low nibbles.
void decode_with_mins(const uint8_t* b, const uint8_t* fifth_bits, const uint8_t* nibbles, float* y) {
  const float d = load_f16(b);
  const float dmin = load_f16(b + 2);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s = unpack_scale_min(b + 4, g);
    const float scale = d * static_cast<float>(s.scale);
    const float min = dmin * static_cast<float>(s.min);
    for (int l = 0; l < 32; ++l) {
      const int fifth = fifth_bits == nullptr ? 0 : ((fifth_bits[l] >> g) & 1) << 4;
      y[32 * g + l] = scale * static_cast<float>(nibble(nibbles[32 * (g / 2) + l], g % 2) | fifth) - min;
    }
  }
}

void decode_q4_k(const uint8_t* b, float* y) { decode_with_mins(b, nullptr, b + 16, y); }
void decode_q5_k(const uint8_t* b, float* y) { decode_with_mins(b, b + 16, b + 48, y); }

void decode_q6_k(const uint8_t* b, float* y) {
  const float d = load_f16(b + 208);
  for (int t = 0; t < 16; ++t) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(b[192 + t]));
    for (int i = 16 * t; i < 16 * t + 16; ++i) {
      const int h = i / 128;
      const int c = (i / 32) % 4;
      const int l = i % 32;
      const int low = nibble(b[64 * h + 32 * (c % 2) + l], c / 2);
      const int high = (b[128 + 32 * h + l] >> (2 * c)) & 3;
      y[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

void decode_q8_k(const uint8_t* b, float* y) {
  const float d = load<float>(b);
  for (int i = 0; i < 256; ++i) {
    y[i] = d * static_cast<float>(static_cast<int8_t>(b[4 + i]));
  }
}

void decode_iq4_xs(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  const int high_bits = load<uint16_t>(b + 2);
  for (int g = 0; g < 8; ++g) {
    const int code = nibble(b[4 + g / 2], g % 2) | ((high_bits >> (2 * g)) & 3) << 4;
    const float scale = d * static_cast<float>(code - 32);
    for (int l = 0; l < 32; ++l) {
      y[32 * g + l] = scale * static_cast<float>(kIq4nlValues[nibble(b[8 + 16 * g + l % 16], l / 16)]);
    }
  }
}

}  // namespace cudabk::formats
