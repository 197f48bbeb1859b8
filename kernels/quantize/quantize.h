// f32 activations -> bytes with a scale per 32. Eight lanes share a block of 32; each takes four elements.
#pragma once

#include "platform/platform.h"
#include "quantize/args.h"

namespace cudabk {

constexpr int kQuantizeThreads = 256;

template <bool Aligned>
inline f32x4 load_four(const float* p) {
  if constexpr (Aligned) {
    return load_readonly(reinterpret_cast<const f32x4*>(p));
  } else {
    return {load_readonly(p), load_readonly(p + 1), load_readonly(p + 2), load_readonly(p + 3)};
  }
}

inline void quantize_row(const QuantizeArgs& a, int64_t row, int k0, f32x4 v) {
  float amax = max_f(max_f(abs_f(v.x), abs_f(v.y)), max_f(abs_f(v.z), abs_f(v.w)));
  float poison = v.x * 0.0f + v.y * 0.0f + v.z * 0.0f + v.w * 0.0f;  // NaN if any element is not finite
  for (int mask = 1; mask < 8; mask *= 2) {
    amax = max_f(amax, shuffle_xor(amax, mask));
    poison += shuffle_xor(poison, mask);
  }
  const float d = amax / 127.0f + poison;
  const float inverse = amax > 0.0f ? 127.0f / amax : 0.0f;
  const int q0 = round_to_int(v.x * inverse), q1 = round_to_int(v.y * inverse);
  const int q2 = round_to_int(v.z * inverse), q3 = round_to_int(v.w * inverse);
  int sum = q0 + q1 + q2 + q3;
  sum += shuffle_xor(sum, 1);
  sum += shuffle_xor(sum, 2);
  const int other = shuffle_xor(sum, 4);
  if (k0 < a.k) {
    const uint32_t packed = (q0 & 0xff) | (q1 & 0xff) << 8 | (q2 & 0xff) << 16 | static_cast<uint32_t>(q3) << 24;
    reinterpret_cast<uint32_t*>(a.codes + row * a.k)[k0 / 4] = packed;
    if (lane() % 8 == 0) {
      a.scales[row * (a.k / kActivationBlock) + k0 / kActivationBlock] = {
          d, pack_f16(static_cast<float>(sum), static_cast<float>(other))};
    }
  }
}

// grid: x = ceil(k / 1024), y = rows (looped above the grid limit).
template <bool Aligned>
KERNEL(quantize, kQuantizeThreads)(QuantizeArgs a) {
  const int k0 = (block_x() * kQuantizeThreads + thread_x()) * 4;
  wait_for_previous_kernel();
  for (int64_t row = block_y(); row < a.rows; row += grid_y()) {
    const int64_t col = row % a.n, i2 = row / a.n % a.b2, i3 = row / a.n / a.b2;
    const auto* x = reinterpret_cast<const float*>(a.x + col * a.nb1 + i2 * a.nb2 + i3 * a.nb3);
    const f32x4 v = k0 < a.k ? load_four<Aligned>(x + k0) : f32x4{0, 0, 0, 0};
    quantize_row(a, row, k0, v);
  }
  allow_next_kernel();
}

}  // namespace cudabk
