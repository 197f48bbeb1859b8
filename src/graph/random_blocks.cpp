#include "graph/random_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/half.h"

namespace cudabk {
namespace {

// Where a type keeps its scale, and how large its values are when the rest is random.
struct ScaleFields {
  DType type;
  double unit;         // format: root mean square of the decoded values of a random block with scale 1
  int scale_at;        // byte offset of the f16 scale; -1: another encoding, see set_scales
  int offset_at = -1;  // byte offset of the f16 minimum or its scale
  double offset = 0;   // that field in units of the scale, such that the mean is zero
};

// The units follow from uniform codes and sub-scales, e.g. q4_0: sqrt(mean((c - 8)^2)), c = 0..15.
constexpr ScaleFields kFields[] = {
    {DType::q4_0, 4.637, 0},           {DType::q4_1, 4.610, 0, 2, -7.5},
    {DType::q5_0, 9.247, 0},           {DType::q5_1, 9.233, 0, 2, -15.5},
    {DType::q8_0, 73.90, 0},           {DType::q8_1, 73.90, 0},
    {DType::q2_K, 13.87, 80, 82, 1.5}, {DType::q3_K, 43.34, 108},
    {DType::q4_K, 258.3, 0, 2, 7.5},   {DType::q5_K, 526.9, 0, 2, 15.5},
    {DType::q6_K, 1365.7, 208},        {DType::q8_K, 73.90, -1},
    {DType::iq2_xxs, 53.36, 0},        {DType::iq2_xs, 55.90, 0},
    {DType::iq2_s, 56.39, 0},          {DType::iq3_xxs, 142.4, 0},
    {DType::iq3_s, 140.2, 0},          {DType::iq1_s, 7.200, 0},
    {DType::iq1_m, 7.200, -1},         {DType::iq4_nl, 67.44, 0},
    {DType::iq4_xs, 1246.3, 0},        {DType::tq1_0, 0.8173, 52},
    {DType::tq2_0, 1.2247, 64},        {DType::mxfp4, 5.852, -1},
    {DType::nvfp4, 5.852, -1},         {DType::q1_0, 1.0, 0},
    {DType::q2_0, 1.2247, 0},
};

const ScaleFields& fields_of(DType type) {
  return *std::find_if(std::begin(kFields), std::end(kFields) - 1,
                       [&](const ScaleFields& f) { return f.type == type; });
}

// Scales lie in [0.75, 1.25] times the middle; the root mean square of that band is sqrt(1 + 0.5^2 / 12).
constexpr double kBandLow = 0.75;
constexpr double kBandWidth = 0.5;
const double kBandRms = std::sqrt(1 + kBandWidth * kBandWidth / 12);

uint16_t finite_f16(double value) {
  const double magnitude = std::clamp(std::abs(value), 0x1p-24, 65504.0);
  return f32_to_f16(static_cast<float>(std::copysign(magnitude, value)));
}

double nvfp4_size(int code) {  // 4 exponent bits (bias 7), 3 of mantissa
  const int exponent = code >> 3;
  return exponent == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), exponent - 10);
}

// A scale code near `value`: of its two neighbours, the larger one when `dither` (in [0, 1)) is below the share that
// gives the mean square of `value`. Never 0 or 0x7F. The codes are coarse for small scales.
uint8_t nvfp4_code(double value, double dither) {
  int below = 1;
  while (below < 0x7D && nvfp4_size(below + 1) <= value) {
    ++below;
  }
  const double low = nvfp4_size(below) * nvfp4_size(below);
  const double high = nvfp4_size(below + 1) * nvfp4_size(below + 1);
  return static_cast<uint8_t>(below + (dither < (value * value - low) / (high - low) ? 1 : 0));
}

template <class T>
void put(uint8_t* p, T value) {
  std::memcpy(p, &value, sizeof(T));
}

}  // namespace

BlockFiller::BlockFiller(DType type, double stddev, uint64_t seed)
    : type_(type), seed_(seed), bytes_(block_bytes(type)) {
  const ScaleFields& fields = fields_of(type);
  scale_at_ = fields.scale_at;
  offset_at_ = fields.offset_at;
  const double middle = stddev / (fields.unit * kBandRms);
  // A symmetric format's codes have a small mean; a random sign of the scale removes it.
  const bool random_sign = fields.offset_at < 0;
  constexpr int kSteps = kScales / 2;
  for (int i = 0; i < kScales; ++i) {
    const int step = i / 2;  // each size once with either sign
    const double scale = middle * (kBandLow + kBandWidth * (step + 0.5) / kSteps);
    scale_[i] = finite_f16(random_sign && i % 2 != 0 ? -scale : scale);
    offset_[i] = finite_f16(f16_to_f32(scale_[i]) * fields.offset);
    const double dither = ((37 * i) % kScales + 0.5) / kScales;  // every step once, in scattered order
    code_[i] = nvfp4_code(2 * scale, dither);                    // format: the factor is half the code's value
  }
  // Powers of two only: a mixture of two neighbours has the wanted mean square.
  const double size = std::clamp(stddev / fields.unit, 0x1p-120, 0x1p120);
  const int exponent = static_cast<int>(std::floor(std::log2(size)));
  exponent_ = exponent + 128;
  const double ratio = size * size / std::ldexp(1.0, 2 * exponent);  // in [1, 4)
  larger_exponent_odds_ = static_cast<uint32_t>((ratio - 1) / 3 * 0xFFFFFFFF);
}

void BlockFiller::fill(int64_t first, int64_t count, uint8_t* out) const {
  const int64_t words = (bytes_ + 7) / 8;
  for (int64_t block = first; block < first + count; ++block, out += bytes_) {
    uint64_t counter = static_cast<uint64_t>(block) * static_cast<uint64_t>(words + 1);
    int64_t at = 0;
    for (; at + 8 <= bytes_; at += 8) {
      put(out + at, random_word(seed_, counter++));
    }
    if (at < bytes_) {
      const uint64_t word = random_word(seed_, counter++);
      std::memcpy(out + at, &word, static_cast<size_t>(bytes_ - at));
    }
    set_scales(out, random_word(seed_, counter));
  }
}

void BlockFiller::set_scales(uint8_t* block, uint64_t random) const {
  const uint16_t scale = scale_[random % kScales];
  switch (type_) {
    case DType::mxfp4:
      block[0] =
          static_cast<uint8_t>(exponent_ + (static_cast<uint32_t>(random >> 32) < larger_exponent_odds_ ? 1 : 0));
      return;
    case DType::nvfp4:
      for (int t = 0; t < 4; ++t) {
        block[t] = code_[(random >> (8 * t)) % kScales];
      }
      return;
    case DType::iq1_m:  // the scale's nibbles are the top nibbles of four words
      for (int i = 0; i < 4; ++i) {
        block[49 + 2 * i] = static_cast<uint8_t>((block[49 + 2 * i] & 15) | ((scale >> (4 * i)) & 15) << 4);
      }
      return;
    case DType::q8_K: {
      put(block, f16_to_f32(scale));
      for (int t = 0; t < 16; ++t) {
        int sum = 0;
        for (int i = 0; i < 16; ++i) {
          sum += static_cast<int8_t>(block[4 + 16 * t + i]);
        }
        put(block + 260 + 2 * t, static_cast<int16_t>(sum));
      }
      return;
    }
    case DType::q8_1: {
      int sum = 0;
      for (int i = 0; i < 32; ++i) {
        sum += static_cast<int8_t>(block[4 + i]);
      }
      put(block, scale);
      put(block + 2, finite_f16(f16_to_f32(scale) * sum));
      return;
    }
    default:
      put(block + scale_at_, scale);
      if (offset_at_ >= 0) {
        put(block + offset_at_, offset_[random % kScales]);
      }
  }
}

}  // namespace cudabk
