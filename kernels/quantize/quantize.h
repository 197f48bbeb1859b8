// f32 activations -> bytes with a scale per 32, in the order of mmvq<T>. Eight lanes share a block of 32; each takes
// four elements.
#pragma once

#include "formats/all.h"
#include "platform/platform.h"
#include "quantize/args.h"

namespace cudabk {

constexpr int kQuantizeThreads = 128;

template <bool Aligned>
f32x4 load_four(const float* p) {
  if constexpr (Aligned) {
    return load_fresh(reinterpret_cast<const f32x4*>(p));
  } else {
    return {load_fresh(p), load_fresh(p + 1), load_fresh(p + 2), load_fresh(p + 3)};
  }
}

// Where the codes and the scale of the elements at k0 go.
template <DType T>
struct ActivationPlace {
  int64_t chunk, scale;
  bool first_of_run;

  explicit ActivationPlace(int k0) {
    using F = Format<T>;
    constexpr SliceShape kShape = F::kShape;
    constexpr int kChunksPerRun = kShape.run_length / 16;
    const ChunkPlace place = F::place(k0 % F::kBlock / 16);
    const int slice = k0 / F::kBlock * kShape.parts + place.part;
    chunk = (static_cast<int64_t>(slice / 32) * kShape.chunks() + place.chunk) * 32 + slice % 32;
    scale = (static_cast<int64_t>(slice / 32) * kShape.runs + place.chunk / kChunksPerRun) * 32 + slice % 32;
    first_of_run = k0 % kShape.run_length == 0;
  }
};

template <DType T>
void quantize_four(const QuantizeArgs& a, int64_t row, int k0, f32x4 v) {
  constexpr SliceShape kShape = Format<T>::kShape;
  float amax = max_f(max_f(abs_f(v.x), abs_f(v.y)), max_f(abs_f(v.z), abs_f(v.w)));
  float poison = v.x * 0.0f + v.y * 0.0f + v.z * 0.0f + v.w * 0.0f;  // NaN if any element is not finite
  for (int mask = 1; mask < 8; mask *= 2) {
    amax = max_f(amax, shuffle_xor(amax, mask));
    poison += shuffle_xor(poison, mask);
  }
  const float inverse = amax > 0.0f ? 127.0f / amax : 0.0f;
  const int q0 = round_to_int(v.x * inverse), q1 = round_to_int(v.y * inverse);
  const int q2 = round_to_int(v.z * inverse), q3 = round_to_int(v.w * inverse);
  int sum = q0 + q1 + q2 + q3;
  for (int mask = 1; mask < kShape.run_length / 4; mask *= 2) {
    sum += shuffle_xor(sum, mask);
  }
  if (k0 < a.k) {
    const ActivationPlace<T> place(k0);
    const uint32_t packed = (q0 & 0xff) | (q1 & 0xff) << 8 | (q2 & 0xff) << 16 | static_cast<uint32_t>(q3) << 24;
    auto* codes = reinterpret_cast<uint32_t*>(a.codes + row * activation_code_bytes(kShape, a.k));
    codes[place.chunk * 4 + k0 % 16 / 4] = packed;
    if (place.first_of_run) {
      a.scales[row * activation_scales(kShape, a.k) + place.scale] = {amax / 127.0f + poison, static_cast<float>(sum)};
    }
  }
}

// grid: x = ceil(k / (4 * kQuantizeThreads)), y = rows (looped above the grid limit).
template <DType T, bool Aligned>
KERNEL(quantize, kQuantizeThreads)(QuantizeArgs a) {
  const int k0 = (block_x() * kQuantizeThreads + thread_x()) * 4;
  allow_next_kernel();
  wait_for_previous_kernel();
  for (int64_t row = block_y(); row < a.rows; row += grid_y()) {
    const int64_t col = row % a.n, i2 = row / a.n % a.b2, i3 = row / a.n / a.b2;
    const auto* x = reinterpret_cast<const float*>(a.x + col * a.nb1 + i2 * a.nb2 + i3 * a.nb3);
    const f32x4 v = k0 < a.k ? load_four<Aligned>(x + k0) : f32x4{0, 0, 0, 0};
    quantize_four<T>(a, row, k0, v);
  }
}

}  // namespace cudabk
