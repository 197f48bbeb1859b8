// Super-blocks of 256 elements whose codes index a table of value octets (iq1, iq2) or quads (iq3).
// g: group of 32 elements; k: octet in the group; p: quad in the group; j: position in the octet.
#include "reference/formats/blocks.h"
#include "reference/formats/tables.h"

namespace cudabk::formats {
namespace {

float with_sign(float magnitude, uint8_t signs, int j) { return ((signs >> j) & 1) != 0 ? -magnitude : magnitude; }

void write_octet_iq2(float scale, uint16_t entry, uint8_t signs, float* y) {
  for (int j = 0; j < 8; ++j) {
    y[j] = with_sign(scale * static_cast<float>(grid8(entry, kIq2Levels, j)), signs, j);
  }
}

// Two quads make an octet of signs.
void write_octet_iq3(float scale, const uint16_t (&entry)[2], const Levels<8>& levels, uint8_t signs, float* y) {
  for (int j = 0; j < 8; ++j) {
    y[j] = with_sign(scale * static_cast<float>(grid4(entry[j / 4], levels, j % 4)), signs, j);
  }
}

void write_octet_iq1(float scale, uint16_t entry, float delta, float* y) {
  for (int j = 0; j < 8; ++j) {
    y[j] = scale * (static_cast<float>(grid8(entry, kIq1Levels, j)) + delta);
  }
}

constexpr float kIq1Shift = 0.125f;  // format: the shift of every iq1 code

}  // namespace

void decode_iq2_xxs(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    const uint8_t* record = b + 2 + 8 * g;
    const uint32_t word = load<uint32_t>(record + 4);
    const float scale = d * (static_cast<float>(word >> 28) + 0.5f) * 0.25f;
    for (int k = 0; k < 4; ++k) {
      write_octet_iq2(scale, kIq2xxsGrid[record[k]], sign_byte((word >> (7 * k)) & 127), y + 32 * g + 8 * k);
    }
  }
}

void decode_iq2_xs(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    for (int k = 0; k < 4; ++k) {
      const uint32_t code = load<uint16_t>(b + 2 + 8 * g + 2 * k);
      const float scale = d * (static_cast<float>(nibble(b[66 + g], k / 2)) + 0.5f) * 0.25f;
      write_octet_iq2(scale, kIq2xsGrid[code & 511], sign_byte(code >> 9), y + 32 * g + 8 * k);
    }
  }
}

void decode_iq2_s(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    for (int k = 0; k < 4; ++k) {
      const int index = b[2 + 4 * g + k] | ((b[66 + g] >> (2 * k)) & 3) << 8;
      const float scale = d * (static_cast<float>(nibble(b[74 + g], k / 2)) + 0.5f) * 0.25f;
      write_octet_iq2(scale, kIq2sGrid[index], b[34 + 4 * g + k], y + 32 * g + 8 * k);
    }
  }
}

void decode_iq3_xxs(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    const uint32_t word = load<uint32_t>(b + 66 + 4 * g);
    const float scale = d * (static_cast<float>(word >> 28) + 0.5f) * 0.5f;
    for (int k = 0; k < 4; ++k) {
      const uint8_t* index = b + 2 + 8 * g + 2 * k;
      write_octet_iq3(scale, {kIq3xxsGrid[index[0]], kIq3xxsGrid[index[1]]}, kIq3xxsLevels,
                      sign_byte((word >> (7 * k)) & 127), y + 32 * g + 8 * k);
    }
  }
}

void decode_iq3_s(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(2 * nibble(b[106 + g / 2], g % 2) + 1);
    const auto entry = [&](int p) { return kIq3sGrid[b[2 + 8 * g + p] | ((b[66 + g] >> p) & 1) << 8]; };
    for (int k = 0; k < 4; ++k) {
      write_octet_iq3(scale, {entry(2 * k), entry(2 * k + 1)}, kIq3sLevels, b[74 + 4 * g + k], y + 32 * g + 8 * k);
    }
  }
}

void decode_iq1_s(const uint8_t* b, float* y) {
  const float d = load_f16(b);
  for (int g = 0; g < 8; ++g) {
    const int word = load<uint16_t>(b + 34 + 2 * g);
    const float scale = d * static_cast<float>(2 * ((word >> 12) & 7) + 1);
    const float delta = (word >> 15) != 0 ? -kIq1Shift : kIq1Shift;
    for (int k = 0; k < 4; ++k) {
      const int index = b[2 + 4 * g + k] | ((word >> (3 * k)) & 7) << 8;
      write_octet_iq1(scale, kIq1sGrid[index], delta, y + 32 * g + 8 * k);
    }
  }
}

void decode_iq1_m(const uint8_t* b, float* y) {
  uint16_t words[4];
  uint16_t scale_bits = 0;  // the f16 scale is spread over the top nibbles
  for (int i = 0; i < 4; ++i) {
    words[i] = load<uint16_t>(b + 48 + 2 * i);
    scale_bits = static_cast<uint16_t>(scale_bits | (words[i] >> 12) << (4 * i));
  }
  const float d = f16_to_f32(scale_bits);
  for (int g = 0; g < 8; ++g) {
    for (int k = 0; k < 4; ++k) {
      const int q = nibble(b[32 + 2 * g + k / 2], k % 2);
      const int t = 2 * g + k / 2;  // group of 16
      const float scale = d * static_cast<float>(2 * ((words[t / 4] >> (3 * (t % 4))) & 7) + 1);
      const int index = b[4 * g + k] | (q & 7) << 8;
      write_octet_iq1(scale, kIq1sGrid[index], (q & 8) != 0 ? -kIq1Shift : kIq1Shift, y + 32 * g + 8 * k);
    }
  }
}

}  // namespace cudabk::formats
