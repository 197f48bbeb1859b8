// Decoding of weights on the device. Format<T> is all that a kernel knows of a type:
//
//   kBytes, kBlock         bytes and elements of a block
//   kShape                 parts and runs (formats/slices.h)
//   kSigned                codes are signed bytes (else unsigned)
//   kHasOffset             value = scale * code + offset; without it offset is 0
//   Slice                  the raw words of a slice, in registers
//   load(block, part)      reads a slice
//   run_offset(part, run)  element index in the block of the run's first element
//   place(chunk)           the inverse: which part, and which of the slice's 16-element chunks, chunk number `chunk` of
//                          the block is
//   codes(s, run)          the run's codes as bytes in element order
//   scale(s, part, run)    {scale, offset} of the run
//
// New formats specialise under a constraint, template <DType T> requires(T == DType::...) struct Format<T>: the
// constants of an explicit specialisation become part of every kernel's module, and of its code hash, whatever its
// type. For every type here scale * code + offset, evaluated as one fma, is the exact value of the format
// specification.
#pragma once

#include "formats/slices.h"
#include "platform/platform.h"

namespace cudabk {

template <DType T>
struct Format;

struct ChunkPlace {
  int part, chunk;
};

// The codes of a run: kRunLength bytes.
template <int Length>
struct Codes {
  uint32_t words[Length / 4];
};

template <DType T>
constexpr int slice_elements() {
  return slice_shape(T).elements();
}

// Slice number `slice` of a row of blocks.
template <DType T>
typename Format<T>::Slice load_slice(const uint8_t* row, int slice) {
  using F = Format<T>;
  constexpr int kParts = slice_shape(T).parts;
  return F::load(row + static_cast<int64_t>(slice / kParts) * F::kBytes, slice % kParts);
}

// Blocks of 18, 34, 210, ... bytes allow 2-byte loads only.
inline uint32_t load_word_2aligned(const uint8_t* p) {
  const auto* half = reinterpret_cast<const uint16_t*>(p);
  return load_readonly(half) | (static_cast<uint32_t>(load_readonly(half + 1)) << 16);
}

// Blocks of an odd size (mxfp4) allow byte loads only.
inline uint32_t load_word_unaligned(const uint8_t* p) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<uint32_t>(load_readonly(p + i)) << (8 * i);
  }
  return word;
}

inline f16 load_half(const uint8_t* p) { return f16{load_readonly(reinterpret_cast<const uint16_t*>(p))}; }

// The 2-byte field at p with 16 other bits above it, in one register.
inline uint32_t load_half_below(const uint8_t* p, uint32_t high) { return load_half(p).bits | high << 16; }

// The halves of a word as f16 numbers.
inline float low_f16(uint32_t word) { return to_float(f16{static_cast<uint16_t>(word & 0xffff)}); }
inline float high_f16(uint32_t word) { return to_float(f16{static_cast<uint16_t>(word >> 16)}); }

}  // namespace cudabk
