// Conversions around library products. All are bound by memory: 16-byte accesses where alignment allows.
#pragma once

#include "common/f16_range.h"
#include "convert/args.h"
#include "formats/all.h"
#include "formats/decode.h"
#include "formats/floats.h"

namespace cudabk {

constexpr int kConvertThreads = 256;
constexpr float kLargestF16 = 65504.0f;

// N floats (a multiple of 8) as elements of another type, in 16-byte stores.
template <DType To, int N>
void store_run(uint8_t* dst, const float (&v)[N]) {
  if constexpr (To == DType::f32) {
    for (int i = 0; i < N / 4; ++i) {
      reinterpret_cast<f32x4*>(dst)[i] = {v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]};
    }
  } else {
    uint32_t w[N / 2];
    for (int i = 0; i < N / 2; ++i) {
      w[i] = To == DType::f16 ? pack_f16(v[2 * i], v[2 * i + 1]) : pack_bf16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < N / 8; ++i) {
      reinterpret_cast<u32x4*>(dst)[i] = {w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
    }
  }
}

// A block of threads decodes kConvertThreads slices, which are one contiguous piece of the destination row, into shared
// memory and copies them out, so that stores are whole lines. 16-byte units are exchanged within groups of eight by the
// number of the slice: without it all lanes of a store would meet in the same banks.
// grid: x = ceil(slices of a row / kConvertThreads), y = rows (looped above the grid limit).
template <DType T, DType To>
KERNEL(dequantize, kConvertThreads)(DequantizeArgs a) {
  using F = Format<T>;
  constexpr int kUnit = 16 / block_bytes(To);  // elements
  constexpr int kUnitsPerBlock = F::kBlock / kUnit, kSwap = kUnitsPerBlock < 8 ? kUnitsPerBlock - 1 : 7;
  auto* shared = shared_memory<u32x4>();
  const int first = block_x() * kConvertThreads;
  const int slices = a.k / slice_elements<T>(), slice = first + thread_x();
  const int part = thread_x() % F::kShape.parts, block = thread_x() / F::kShape.parts;
  wait_for_previous_kernel();
  for (int64_t row = block_y(); row < a.rows; row += grid_y()) {
    const int64_t i1 = row % a.m, i2 = row / a.m % a.a2, i3 = row / a.m / a.a2;
    if (slice < slices) {
      const auto s = load_slice<T>(a.weights + i1 * a.row_stride + i2 * a.stride2 + i3 * a.stride3, slice);
      for (int run = 0; run < F::kShape.runs; ++run) {
        float v[F::kShape.run_length];
        decode_run<T>(s, part, run, v);
        for (int u = 0; u < F::kShape.run_length / kUnit; ++u) {
          const int unit = F::run_offset(part, run) / kUnit + u;
          float piece[kUnit];
          for (int i = 0; i < kUnit; ++i) {
            piece[i] = v[u * kUnit + i];
          }
          store_run<To>(reinterpret_cast<uint8_t*>(shared + block * kUnitsPerBlock + (unit ^ (thread_x() & kSwap))),
                        piece);
        }
      }
    }
    block_sync();
    const int here = slices - first < kConvertThreads ? slices - first : kConvertThreads;
    auto* dst = reinterpret_cast<u32x4*>(a.dst + (row * a.k + static_cast<int64_t>(first) * slice_elements<T>()) *
                                                     block_bytes(To));
    for (int i = thread_x(); i < here * slice_elements<T>() / kUnit; i += kConvertThreads) {
      const int unit = i % kUnitsPerBlock;
      const int owner =
          i / kUnitsPerBlock * F::kShape.parts + F::place(unit * kUnit / 16).part;  // thread that stored it
      dst[i] = shared[i / kUnitsPerBlock * kUnitsPerBlock + (unit ^ (owner & kSwap))];
    }
    block_sync();
  }
  allow_next_kernel();
}

template <DType To>
void store_element(uint8_t* dst, int64_t i, float v) {
  if constexpr (To == DType::f32) {
    reinterpret_cast<float*>(dst)[i] = v;
  } else if constexpr (To == DType::f16) {
    reinterpret_cast<uint16_t*>(dst)[i] = to_f16(v).bits;
  } else {
    reinterpret_cast<uint16_t*>(dst)[i] = to_bf16(v).bits;
  }
}

// Largest |x| of a row over the block. Threads: kConvertThreads; shared: one float per warp.
template <DType From>
float row_amax(const uint8_t* x, int k) {
  float* partial = shared_memory<float>();
  float amax = 0;
  for (int i = thread_x(); i < k; i += kConvertThreads) {
    amax = max_f(amax, abs_f(load_float<From>(x + static_cast<int64_t>(i) * block_bytes(From))));
  }
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    amax = max_f(amax, shuffle_xor(amax, mask));
  }
  if (lane() == 0) {
    partial[warp()] = amax;
  }
  block_sync();
  amax = partial[0];
  for (int w = 1; w < kConvertThreads / kWarpSize; ++w) {
    amax = max_f(amax, partial[w]);
  }
  block_sync();
  return amax;
}

// Activations to another float type, one block a row (looped). f16: rows outside its range are multiplied by a power of
// two, which scale_columns undoes. Vector: rows are 16-byte aligned and k, k_padded multiples of 8.
template <DType From, DType To, bool Vector>
KERNEL(convert_rows, kConvertThreads)(ConvertArgs a) {
  wait_for_previous_kernel();
  for (int64_t row = block_x(); row < a.rows; row += grid_x()) {
    const uint8_t* x = a.x + row % a.n * a.nb1 + row / a.n % a.b2 * a.nb2 + row / a.n / a.b2 * a.nb3;
    uint8_t* dst = a.dst + row * a.k_padded * block_bytes(To);
    float factor = 1.0f;
    if constexpr (To == DType::f16) {
      const float largest = From == DType::f32 ? row_amax<From>(x, a.k) : 1.0f;
      factor = fits_f16(largest, kLargestF16) ? 1.0f : f16_factor(largest);
      if (thread_x() == 0) {
        a.scale[row] = f16_inverse(factor);
      }
    }
    if constexpr (Vector) {
      for (int i = thread_x() * 8; i < a.k_padded; i += kConvertThreads * 8) {
        float v[8] = {};
        if (i < a.k) {
          load_floats<From>(x + static_cast<int64_t>(i) * block_bytes(From), v);
        }
        if constexpr (To == DType::f32) {
          reinterpret_cast<f32x4*>(dst)[i / 4] = {v[0], v[1], v[2], v[3]};
          reinterpret_cast<f32x4*>(dst)[i / 4 + 1] = {v[4], v[5], v[6], v[7]};
        } else if constexpr (To == DType::f16) {
          reinterpret_cast<u32x4*>(dst)[i / 8] = {
              pack_f16(v[0] * factor, v[1] * factor), pack_f16(v[2] * factor, v[3] * factor),
              pack_f16(v[4] * factor, v[5] * factor), pack_f16(v[6] * factor, v[7] * factor)};
        } else {
          reinterpret_cast<u32x4*>(dst)[i / 8] = {pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]),
                                                  pack_bf16(v[6], v[7])};
        }
      }
    } else {
      for (int i = thread_x(); i < a.k_padded; i += kConvertThreads) {
        const float v = i < a.k ? load_float<From>(x + static_cast<int64_t>(i) * block_bytes(From)) : 0.0f;
        store_element<To>(dst, i, v * factor);
      }
    }
  }
  allow_next_kernel();
}

// Undoes convert_rows' scaling; columns whose scale is 1 are not touched. grid: x = columns (looped).
template <int Threads>
KERNEL(scale_columns, Threads)(ScaleColumnsArgs a) {
  wait_for_previous_kernel();
  for (int64_t col = block_x(); col < a.columns; col += grid_x()) {
    const float scale = a.scale[col];
    for (int64_t i = thread_x(); scale != 1.0f && i < a.m; i += Threads) {
      a.dst[col * a.m + i] *= scale;
    }
  }
  allow_next_kernel();
}

// Address arrays for a batched library product whose batches are not regularly spaced.
template <int Threads>
KERNEL(gemm_pointers, Threads)(GemmPointersArgs a) {
  const int64_t b = static_cast<int64_t>(block_x()) * Threads + thread_x();
  if (b < a.batch) {
    const int64_t i2 = b % a.b2, i3 = b / a.b2;
    a.pointers[b] = a.a + i2 / a.ratio2 * a.a_stride2 + i3 / a.ratio3 * a.a_stride3;
    a.pointers[a.batch + b] = a.b + i2 * a.b_stride2 + i3 * a.b_stride3;
    a.pointers[2 * a.batch + b] = a.c + b * a.c_stride;
  }
}

}  // namespace cudabk
