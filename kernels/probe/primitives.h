// Kernels of no op that use every primitive of the platform layer, so that each can be compared with a plain loop.
#pragma once

#include "platform/platform.h"
#include "probe/primitives_args.h"

namespace cudabk {

// One warp: loads the fragments of A and B as docs/adding-a-kernel.md maps them, multiplies, stores the sums. Register
// i of A holds 4 bytes of row g + 8 (i mod 2), from byte 4t + 16 (i / 2) on, whatever the element type.
template <MmaForm Form>
KERNEL(probe_mma, 32)(ProbeMmaArgs p) {
  constexpr int kRowBytes = mma_k_bytes(Form), kHalves = mma_rows(Form) / 8, kSteps = kRowBytes / 16;
  const int g = lane() / 4, t = lane() % 4;
  uint32_t a[4] = {}, b[2] = {};
  for (int i = 0; i < kHalves * kSteps; ++i) {
    const int row = g + 8 * (i % kHalves), byte = 4 * t + 16 * (i / kHalves);
    a[i] = *reinterpret_cast<const uint32_t*>(p.a + row * kRowBytes + byte);
  }
  for (int i = 0; i < kSteps; ++i) {
    b[i] = *reinterpret_cast<const uint32_t*>(p.b + g * kRowBytes + 4 * t + 16 * i);
  }
  uint32_t bits[4];
  for (int i = 0; i < 2 * kHalves; ++i) {
    bits[i] = p.d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  }
  if constexpr (mma_is_integer(Form)) {
    int32_t d[4] = {static_cast<int32_t>(bits[0]), static_cast<int32_t>(bits[1]), 0, 0};
    if constexpr (kHalves == 2) {
      d[2] = static_cast<int32_t>(bits[2]);
      d[3] = static_cast<int32_t>(bits[3]);
    }
    const uint32_t two[2] = {a[0], a[1]};
    if constexpr (Form == MmaForm::kS8x16x8x32) {
      mma_s8_16832(d, a, b);
    } else if constexpr (Form == MmaForm::kS8x16x8x16) {
      mma_s8_16816(d, two, b[0]);
    } else {
      int32_t half[2] = {d[0], d[1]};
      mma_s8_8816(half, a[0], b[0]);
      d[0] = half[0];
      d[1] = half[1];
    }
    for (int i = 0; i < 2 * kHalves; ++i) {
      bits[i] = static_cast<uint32_t>(d[i]);
    }
  } else {
    float d[4] = {bits_to_float(bits[0]), bits_to_float(bits[1]), bits_to_float(bits[2]), bits_to_float(bits[3])};
    const uint32_t two[2] = {a[0], a[1]};
    if constexpr (Form == MmaForm::kF16x16x8x16) {
      mma_f16_16816(d, a, b);
    } else if constexpr (Form == MmaForm::kBf16x16x8x16) {
      mma_bf16_16816(d, a, b);
    } else {
      mma_f16_1688(d, two, b[0]);
    }
    for (int i = 0; i < 4; ++i) {
      bits[i] = float_bits(d[i]);
    }
  }
  for (int i = 0; i < 2 * kHalves; ++i) {
    p.d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = bits[i];
  }
}

// One warp: `Count` 8 x 8 matrices of 16-bit elements go to shared memory as they are; lane l's register i goes to word
// 32 i + l of the result. Shared memory: 128 * Count bytes.
template <int Count, bool Transposed>
KERNEL(probe_ldmatrix, 32)(ProbeMoveArgs p) {
  uint32_t* rows = shared_memory<uint32_t>();
  for (int i = 0; i < Count; ++i) {
    rows[32 * i + lane()] = reinterpret_cast<const uint32_t*>(p.from)[32 * i + lane()];
  }
  warp_sync();
  const uint32_t* row = rows + 4 * (lane() % (8 * Count));
  uint32_t r4[4] = {}, r2[2] = {}, r1 = 0;
  if constexpr (Count == 4) {
    Transposed ? ldmatrix_x4_trans(r4, row) : ldmatrix_x4(r4, row);
  } else if constexpr (Count == 2) {
    Transposed ? ldmatrix_x2_trans(r2, row) : ldmatrix_x2(r2, row);
  } else {
    Transposed ? ldmatrix_x1_trans(r1, row) : ldmatrix_x1(r1, row);
  }
  uint32_t* out = reinterpret_cast<uint32_t*>(p.to);
  for (int i = 0; i < Count; ++i) {
    out[32 * i + lane()] = Count == 4 ? r4[i] : Count == 2 ? r2[i % 2] : r1;
  }
}

// 64 threads copy two groups of Bytes each through shared memory; the first group is read while the second may still be
// in flight. Threads from `valid` on leave zeros. Shared memory: 128 * Bytes bytes.
template <int Bytes>
KERNEL(probe_async, 64)(ProbeMoveArgs p) {
  uint8_t* staged = shared_memory<uint8_t>();
  const bool valid = thread_x() < p.valid;
  for (int group = 0; group < 2; ++group) {
    const int at = (group * 64 + thread_x()) * Bytes;
    if constexpr (Bytes == 16) {
      async_copy_16(staged + at, p.from + at, valid);
    } else if constexpr (Bytes == 8) {
      async_copy_8(staged + at, p.from + at, valid);
    } else {
      async_copy_4(staged + at, p.from + at, valid);
    }
    async_commit();
  }
  async_wait<1>();
  block_sync();
  const int other = 63 - thread_x();  // another thread's copy: needs the barrier
  for (int i = 0; i < Bytes; ++i) {
    p.to[other * Bytes + i] = staged[other * Bytes + i];
  }
  async_wait<0>();
  block_sync();
  for (int i = 0; i < Bytes; ++i) {
    p.to[(64 + other) * Bytes + i] = staged[(64 + other) * Bytes + i];
  }
}

// 32 threads copy one element of Bytes each with the hinted loads and stores, then once more 32 elements further.
template <class T>
KERNEL(probe_move, 32)(ProbeMoveArgs p) {
  const T* from = reinterpret_cast<const T*>(p.from);
  T* to = reinterpret_cast<T*>(p.to);
  store_streaming(to + lane(), load_readonly(from + lane()));
  to[32 + lane()] = load_streaming(from + 32 + lane());
}

// Conversions, packed and scalar arithmetic, element by element.
template <int Threads>
KERNEL(probe_values, Threads)(ProbeValuesArgs p) {
  const int i = block_x() * Threads + thread_x();
  if (i >= p.count) {
    return;
  }
  const float x = p.x[i], y = p.y[i];
  const uint32_t u = p.u[i], v = p.v[i];
  const uint32_t hx = pack_f16(x, y), hy = pack_f16(y, 0.5f), bx = pack_bf16(x, y), by = pack_bf16(y, 0.5f);
  const uint32_t results[kProbeValueCount] = {
      to_f16(x).bits,
      to_bf16(x).bits,
      float_bits(to_float(f16{static_cast<uint16_t>(u)})),
      float_bits(to_float(bf16{static_cast<uint16_t>(u)})),
      hx,
      bx,
      static_cast<uint32_t>(round_to_int(x)),
      static_cast<uint32_t>(dp4a(static_cast<int>(u), static_cast<int>(v), 7)),
      static_cast<uint32_t>(dp4a_us(u, static_cast<int>(v), -7)),
      byte_perm(u, v, u & 0x7777u),
      funnel_shift_right(u, v, 5),
      count_bits(u),
      f16x2_fma(hx, hy, hx),
      f16x2_mul(hx, hy),
      f16x2_add(hx, hy),
      f16x2_sub(hx, hy),
      bf16x2_fma(bx, by, bx),
      bf16x2_mul(bx, by),
      float_bits(divide(x, y)),
      float_bits(fma_f(x, y, 1.0f)),
      float_bits(inverse_sqrt(abs_f(x))),
      float_bits(exp_f(x)),
      float_bits(fast_exp(x)),
      is_finite(bits_to_float(u)) ? 1u : 0u,
      float_bits(max_f(x, y)),
      float_bits(min_f(x, y)),
      float_bits(abs_f(x)),
  };
  for (int r = 0; r < kProbeValueCount; ++r) {
    p.results[r * p.count + i] = results[r];
  }
}

// Shuffles, votes, indices, a sum over the block, atomics. Shared memory: Threads / 32 floats.
template <int Threads>
KERNEL(probe_warp, Threads)(ProbeWarpArgs p) {
  const int i = thread_x();
  const float x = p.x[i];
  p.floats[i] = shuffle(x, 5);
  p.floats[Threads + i] = shuffle_xor(x, 3);
  p.floats[2 * Threads + i] = shuffle_down(x, 4);
  float sum = x;
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    sum += shuffle_xor(sum, mask);
  }
  float* partial = shared_memory<float>();
  if (lane() == 0) {
    partial[warp()] = sum;
  }
  block_sync();
  float total = 0;
  for (int w = 0; w < Threads / kWarpSize; ++w) {
    total += partial[w];
  }
  p.floats[3 * Threads + i] = total;
  const int32_t values[6] = {lane(),   warp(),   warp_any(x > 1000.0f) ? 1 : 0, warp_all(x > -1.0f) ? 1 : 0,
                             grid_x(), block_x()};
  for (int r = 0; r < 6; ++r) {
    p.integers[r * Threads + i] = values[r];
  }
  atomic_add(p.float_sum, 1.0f);
  atomic_add(p.int_sum, -1);
  atomic_add(p.uint_sum, static_cast<uint32_t>(shuffle(static_cast<int32_t>(i), 0) + 1));
  memory_fence();
}

// One block: lets its successor start, waits for its predecessor, spins, then adds 1 to 32 numbers.
template <bool AllowEarly>
KERNEL(probe_overlap, 32)(ProbeOverlapArgs p) {
  const int64_t start = global_time_ns();
  if constexpr (AllowEarly) {
    allow_next_kernel();
  }
  wait_for_previous_kernel();
  while (global_time_ns() - start < p.spin_ns) {
  }
  p.to[lane()] = p.from[lane()] + 1.0f;
  if (lane() == 0) {
    p.times_ns[0] = start;
    p.times_ns[1] = global_time_ns();
  }
}

}  // namespace cudabk
