// Blocks with one scale (and at most one offset), the fp4 blocks and the ternary ones.
#include "reference/formats/blocks.h"
#include "reference/formats/tables.h"

namespace cudabk::formats {

void decode_q4_0(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(nibble(b[2 + i % 16], i / 16) - 8);
  }
}

void decode_q4_1(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(nibble(b[4 + i % 16], i / 16)) + m;
  }
}

void decode_q5_0(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  const uint32_t high = load<uint32_t>(b + 2);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(b[6 + i % 16], i / 16) | static_cast<int>((high >> i) & 1) << 4;
    y[i] = d * static_cast<float>(code - 16);
  }
}

void decode_q5_1(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  const float m = load_f16(b + 2);
  const uint32_t high = load<uint32_t>(b + 4);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(b[8 + i % 16], i / 16) | static_cast<int>((high >> i) & 1) << 4;
    y[i] = d * static_cast<float>(code) + m;
  }
}

void decode_q8_0(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
  }
}

void decode_q8_1(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(static_cast<int8_t>(b[4 + i]));
  }
}

void decode_iq4_nl(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(kIq4nlValues[nibble(b[2 + i % 16], i / 16)]);
  }
}

void decode_mxfp4(const uint8_t* b, float* y) {
  const float d = e8m0_half(b[0]);
  for (int i = 0; i < 32; ++i) {
    y[i] = d * static_cast<float>(kFp4Values[nibble(b[1 + i % 16], i / 16)]);
  }
}

void decode_nvfp4(const uint8_t* b, float* y) {
  for (int i = 0; i < 64; ++i) {
    const int t = i / 16;
    const int r = i % 16;
    y[i] = ue4m3_half(b[t]) * static_cast<float>(kFp4Values[nibble(b[4 + 8 * t + r % 8], r / 8)]);
  }
}

void decode_q1_0(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 128; ++i) {
    y[i] = ((b[2 + i / 8] >> (i % 8)) & 1) != 0 ? d : -d;
  }
}

void decode_q2_0(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int i = 0; i < 64; ++i) {
    y[i] = d * static_cast<float>(((b[2 + i / 4] >> (2 * (i % 4))) & 3) - 1);
  }
}

void decode_tq2_0(const uint8_t* b, float* y) {
  const float d = load_f16(b + 64);
  for (int i = 0; i < 256; ++i) {
    y[i] = d * static_cast<float>(((b[32 * (i / 128) + i % 32] >> (2 * ((i / 32) % 4))) & 3) - 1);
  }
}

void decode_tq1_0(const uint8_t* b, float* y) {
  static constexpr int kPowersOf3[5] = {1, 3, 9, 27, 81};
  const float d = load_f16(b + 52);
  const auto trit = [](int byte, int m) { return (3 * ((byte * kPowersOf3[m]) % 256)) >> 8; };
  for (int i = 0; i < 256; ++i) {
    int code = 0;
    if (i < 160) {
      code = trit(b[i % 32], i / 32);
    } else if (i < 240) {
      code = trit(b[32 + (i - 160) % 16], (i - 160) / 16);
    } else {
      code = trit(b[48 + (i - 240) % 4], (i - 240) / 4);
    }
    y[i] = d * static_cast<float>(code - 1);
  }
}

}  // namespace cudabk::formats
