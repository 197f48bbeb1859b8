// f32 activations to 16 bits for products of float weights: dense rows, every element read once. Rows start on
// multiples of 16 bytes, k is a multiple of 4 and equals k_padded.
#pragma once

#include "common/f16_range.h"
#include "convert/narrow_args.h"
#include "formats/dtypes.h"
#include "platform/platform.h"

namespace cudabk {

inline const float* narrow_source(const ConvertArgs& a, int64_t row) {
  return reinterpret_cast<const float*>(a.x + row % a.n * a.nb1 + row / a.n % a.b2 * a.nb2 + row / a.n / a.b2 * a.nb3);
}

// Four elements per thread and run, zeros past k.
template <int Threads, int Runs>
void load_narrow(const float* x, int first, int k, f32x4 (&v)[Runs]) {
  for (int r = 0; r < Runs; ++r) {
    const int i = first + (r * Threads + thread_x()) * 4;
    v[r] = i < k ? load_fresh(reinterpret_cast<const f32x4*>(x + i)) : f32x4{0, 0, 0, 0};
  }
}

template <DType To, int Threads, int Runs>
void store_narrow(uint16_t* dst, int first, int k, const f32x4 (&v)[Runs], float factor) {
  for (int r = 0; r < Runs; ++r) {
    const int i = first + (r * Threads + thread_x()) * 4;
    if (i < k) {
      const u32x2 words = To == DType::f16 ? u32x2{pack_f16(v[r].x * factor, v[r].y * factor),
                                                   pack_f16(v[r].z * factor, v[r].w * factor)}
                                           : u32x2{pack_bf16(v[r].x, v[r].y), pack_bf16(v[r].z, v[r].w)};
      store_whole(reinterpret_cast<u32x2*>(dst + i), words);
    }
  }
}

// A block converts a piece of a row. grid: x = rows * ceil(k / kNarrowPiece).
template <DType To>
KERNEL(narrow_pieces, kNarrowPieceThreads)(ConvertArgs a) {
  static_assert(To == DType::bf16, "other types need a factor for the whole row");
  const int pieces = (a.k + kNarrowPiece - 1) / kNarrowPiece, first = block_x() % pieces * kNarrowPiece;
  const int64_t row = block_x() / pieces;
  allow_next_kernel();
  wait_for_previous_kernel();
  f32x4 v[kNarrowPiece / kNarrowPieceThreads / 4];
  load_narrow<kNarrowPieceThreads>(narrow_source(a, row), first, a.k, v);
  store_narrow<To, kNarrowPieceThreads>(reinterpret_cast<uint16_t*>(a.dst) + row * a.k, first, a.k, v, 1.0f);
}

template <int Runs>
float largest_narrow(const f32x4 (&v)[Runs]) {
  float largest = 0;
  for (int r = 0; r < Runs; ++r) {
    largest = max_f(max_f(largest, max_f(abs_f(v[r].x), abs_f(v[r].y))), max_f(abs_f(v[r].z), abs_f(v[r].w)));
  }
  return largest;
}

// Over the block. Shared memory: one float per warp.
inline float block_largest(float largest) {
  constexpr int kWarps = kNarrowRowThreads / kWarpSize;
  float* partial = shared_memory<float>();
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    largest = max_f(largest, shuffle_xor(largest, mask));
  }
  if (lane() == 0) {
    partial[warp()] = largest;
  }
  block_sync();
  largest = partial[0];
  for (int w = 1; w < kWarps; ++w) {
    largest = max_f(largest, partial[w]);
  }
  return largest;
}

// A block converts a row to f16 under a power of two, 1 for most rows; a.scale undoes it. A row of up to
// Runs * 4 * kNarrowRowThreads elements stays in registers, a longer one is read twice. grid: x = rows.
template <DType To, int Runs>
KERNEL(narrow_rows, kNarrowRowThreads)(ConvertArgs a) {
  static_assert(To == DType::f16, "bf16 needs no factor");
  constexpr int kPart = kNarrowRowThreads * 4 * Runs;
  const int64_t row = block_x();
  const float* x = narrow_source(a, row);
  auto* dst = reinterpret_cast<uint16_t*>(a.dst) + row * a.k;
  allow_next_kernel();
  wait_for_previous_kernel();
  f32x4 v[Runs];
  float largest = 0;
  for (int first = 0; first < a.k; first += kPart) {
    load_narrow<kNarrowRowThreads>(x, first, a.k, v);
    largest = max_f(largest, largest_narrow(v));
  }
  largest = block_largest(largest);
  const float factor = fits_f16(largest) ? 1.0f : f16_factor(largest);
  if (thread_x() == 0) {
    a.scale[row] = f16_inverse(factor);
  }
  for (int first = 0; first < a.k; first += kPart) {
    if (a.k > kPart) {
      load_narrow<kNarrowRowThreads>(x, first, a.k, v);
    }
    store_narrow<To, kNarrowRowThreads>(dst, first, a.k, v, factor);
  }
}

}  // namespace cudabk
