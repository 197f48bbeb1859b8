// q4_K: 256 elements in 144 bytes: f16 d, f16 dmin, 12 bytes of eight 6-bit scales and mins, 128 bytes of nibbles.
// A run of 32 nibble bytes holds group 2j in its low and group 2j + 1 in its high nibbles.
#pragma once

#include "formats/format.h"

namespace cudabk {

template <>
struct Format<DType::q4_K> {
  static constexpr int kBytes = 144, kBlock = 256, kRuns = 2;
  static constexpr bool kHasOffset = true;
  static constexpr int kSlicesPerBlock = 8;  // slice 2j + h: bytes 32j + 16h .. + 15 of the nibbles
  struct Slice {
    u32x4 header;  // d and dmin, then the 12 scale bytes
    u32x4 nibbles;
  };

  static Slice load(const uint8_t* row, int slice) {
    const uint8_t* block = row + static_cast<int64_t>(slice / kSlicesPerBlock) * kBytes;
    const auto* words = reinterpret_cast<const u32x4*>(block);
    return {load_readonly(words), load_streaming(words + 1 + slice % kSlicesPerBlock)};
  }
  static int run_start(int slice, int run) {
    return slice / kSlicesPerBlock * kBlock + (slice % kSlicesPerBlock / 2) * 64 + run * 32 + (slice % 2) * 16;
  }
  static u32x4 codes(const Slice& s, int run) {
    const int shift = 4 * run;
    return {(s.nibbles.x >> shift) & 0x0f0f0f0f, (s.nibbles.y >> shift) & 0x0f0f0f0f,
            (s.nibbles.z >> shift) & 0x0f0f0f0f, (s.nibbles.w >> shift) & 0x0f0f0f0f};
  }
  static f32x2 scale(const Slice& s, int slice, int run) {
    const int j = slice % kSlicesPerBlock / 2;  // groups 2j and 2j + 1
    const int shift = 16 * (j & 1);
    const uint32_t a = s.header.y >> shift, b = s.header.z >> shift, c = s.header.w >> shift;
    const uint32_t scales = j < 2 ? a & 0x3f3f : (c & 0x0f0f) | ((a >> 2) & 0x3030);
    const uint32_t mins = j < 2 ? b & 0x3f3f : ((c >> 4) & 0x0f0f) | ((b >> 2) & 0x3030);
    const float d = to_float(f16{static_cast<uint16_t>(s.header.x & 0xffff)});
    const float dmin = to_float(f16{static_cast<uint16_t>(s.header.x >> 16)});
    return {d * static_cast<float>((scales >> (8 * run)) & 0xff), -dmin * static_cast<float>((mins >> (8 * run)) & 0xff)};
  }
};

}  // namespace cudabk
