// q8_0: 32 elements in 34 bytes: f16 d, 32 signed bytes.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q8_0> {
  static constexpr int kBytes = 34, kBlock = 32, kRuns = 1;
  static constexpr bool kHasOffset = false;
  struct Slice {
    uint32_t bytes[4];
    float d;
  };

  static Slice load(const uint8_t* row, int slice) {
    const uint8_t* block = row + static_cast<int64_t>(slice / 2) * kBytes;
    Slice s;
    for (int i = 0; i < 4; ++i) {
      s.bytes[i] = load_word_2aligned(block + 2 + 16 * (slice % 2) + 4 * i);
    }
    s.d = to_float(load_half(block));
    return s;
  }
  static int run_start(int slice, int /*run*/) { return slice * 16; }
  static u32x4 codes(const Slice& s, int /*run*/) { return {s.bytes[0], s.bytes[1], s.bytes[2], s.bytes[3]}; }
  static f32x2 scale(const Slice& s, int /*slice*/, int /*run*/) { return {s.d, 0.0f}; }
};

}  // namespace cudabk
