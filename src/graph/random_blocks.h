// Internal to tensor initialisation: random blocks of the quantized types.
#pragma once

#include <array>
#include <cstdint>

#include "formats/dtypes.h"

namespace cudabk {

// Word `counter` of the random stream `seed`: a bijective mix (splitmix64's finaliser) of a Weyl sequence.
inline uint64_t random_word(uint64_t seed, uint64_t counter) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  };
  return mix((seed ^ 0x6A09E667F3BCC908) * kStep + (counter + 1) * kStep);
}

// Random bytes everywhere, then the scale fields: each block's scale is drawn from a band around the size that gives
// the wanted standard deviation, so that a kernel which takes a neighbour's scale is wrong visibly.
class BlockFiller {
 public:
  BlockFiller(DType type, double stddev, uint64_t seed);
  // Blocks [first, first + count) of the stream.
  void fill(int64_t first, int64_t count, uint8_t* out) const;

 private:
  static constexpr int kScales = 64;

  void set_scales(uint8_t* block, uint64_t random) const;

  DType type_;
  uint64_t seed_;
  int64_t bytes_;
  int scale_at_ = -1;  // byte offsets of the f16 fields, -1: none
  int offset_at_ = -1;
  std::array<uint16_t, kScales> scale_{};   // f16 bits; q8_K uses the value
  std::array<uint16_t, kScales> offset_{};  // f16 bits of the minimum's scale, where there is one
  int exponent_ = 0;                        // mxfp4: the smaller scale code,
  uint32_t larger_exponent_odds_ = 0;       // and how often (of 2^32) the next one is taken
  std::array<uint8_t, kScales> code_{};     // nvfp4: scale codes
};

}  // namespace cudabk
