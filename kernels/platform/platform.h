// The primitives kernels are written in. Two implementations of one contract: platform/device.h (NVRTC: intrinsics and
// PTX) and platform/host.h (the emulated GPU: fibers). Kernels include only this header; no CUDA word appears
// elsewhere.
//
// Declaring a kernel (one POD argument struct, by value; blocks are one-dimensional):
//   template <int Threads, int Vec> KERNEL(rms_norm, Threads)(RmsNormArgs a) { ... }
//   KERNEL_MIN_BLOCKS(name, Threads, MinBlocksPerSm) also bounds registers.
//
// Indices         int thread_x(), block_x(), block_y(), block_z(), grid_x(), grid_y(), grid_z(); lane(), warp()
// Shared memory   T* shared_memory<T>(): the block's dynamic shared memory, 128-byte aligned, size given by the launch.
//                 uint32_t shared_address(const void*); shared_word, shared_half(uint32_t address): what no one writes
//                 any more
//                 There is no static shared memory. The emulator fills it with NaN before every block.
// Barriers        block_sync() all threads of the block; warp_sync() all lanes of the warp. Every thread must arrive.
// Shuffles        T shuffle(T v, int lane), shuffle_xor(T v, int mask), shuffle_down(T v, int delta)
//                 for float, int32_t, uint32_t; all 32 lanes take part. bool warp_any(bool), warp_all(bool);
//                 uint32_t warp_max(uint32_t)
// Loads           T load_readonly(const T*), load_streaming(const T*) (no L1 allocation): constant data only, or a
//                 kernel that is not launched to overlap its predecessor; load_fresh(const T*): what earlier kernels
//                 wrote. T is a 1/2/4/8/16-byte (load_fresh: from 2 bytes) aggregate, naturally aligned: u32x2 {x,y},
//                 u32x4 {x,y,z,w}, f32x2, f32x4. store_streaming(T*, T);
//                 void load_shared_if(bool wanted, const T* shared, T& v): keeps v where not wanted; T is u32x2, u32x4
//                 store_whole(T*, T): one 4/8/16-byte store (a plain assignment may be split).
// Integer         int dp4a(int a, int b, int c) s8 x s8; dp4a_us(uint32_t a, int b, int c) u8 x s8;
//                 uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector) (PRMT); funnel_shift_right(lo, hi, n);
//                 select_bytes: byte_perm of nibbles below 8
//                 uint32_t in_register(uint32_t v): a constant for which a loop keeps a register, not made anew at
//                 every use; int opaque(int v): v with its bits unknown, so that sums with constants stay sums, which
//                 addresses take for nothing
//                 uint32_t and_or(uint32_t x, uint32_t mask, uint32_t bits): (x & mask) | bits in one instruction
//                 uint32_t count_bits(uint32_t): how many are set
// Conversions     float to_float(f16|bf16); f16 to_f16(float); bf16 to_bf16(float) (nearest even);
//                 uint32_t pack_f16(float lo, float hi), pack_bf16(float lo, float hi); int round_to_int(float)
//                 (nearest even), truncate_to_int(float) (toward zero), both saturate and make 0 of NaN;
//                 float bits_to_float(uint32_t); uint32_t float_bits(float)
// Packed f16      uint32_t f16x2_fma(a, b, c), f16x2_mul(a, b), f16x2_add, f16x2_sub; the same bf16x2_fma, bf16x2_mul;
//                 f16x2_low(a), f16x2_high(a): one half of a pair twice
// Math            abs_f, max_f, min_f, inverse_sqrt, exp_f, fast_exp, fma_f(a, b, c), divide (correctly rounded),
//                 is_finite; add_rounded(a, b), mul_rounded(a, b): never contracted into a fused operation
// Tensor cores    docs/adding-a-kernel.md has the fragment maps.
//                 mma_f16_16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])   d += a * b
//                 mma_f16_16816(d, a, b, const float (&c)[4])   d = a * b + c
//                 mma_bf16_16816(d, a, b), mma_f16_1688(float (&d)[4], const uint32_t (&a)[2], uint32_t b)
//                 mma_s8_16832(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
//                 mma_s8_16816(int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b), mma_s8_8816(int32_t (&d)[2], a, b)
//                 ldmatrix_x4(uint32_t (&r)[4], const void* shared_row), ldmatrix_x2, ldmatrix_x1 and the same with
//                 suffix _trans
// Async copies    async_copy_16(void* shared, const void* global), async_copy_16(..., bool valid) (zero-fills when
// not),
//                 async_copy_4, async_copy_8; async_commit(); async_wait<N>() (at most N newest groups still in
//                 flight). The emulator performs a copy at the wait that completes its group, not at issue.
// Warp copies     WarpCopies<Stages>(void* shared_barriers): copies of a warp into a ring of slots, Stages * 8 bytes of
//                 shared memory. Lanes for which asks() is true call expect(slot, bytes of this fill) and copy(slot,
//                 void* shared, const void* global, bytes) (multiples of 16, as often as it takes). All lanes call
//                 close() (a fill is complete; also when there was nothing to fill) and wait(slot, parity): the oldest
//                 fill has come; parity is 0 for a slot's first fill, then alternates. From sm_90 one lane asks for
//                 all of it (bulk copies).
// Atomics         atomic_add(float*|uint32_t*|int32_t*, v) -> old value; memory_fence()
// Launch overlap  wait_for_previous_kernel() before the first read of what earlier kernels wrote;
//                 allow_next_kernel(). No-ops where the device has no programmatic dependent launch.
// Clocks          int64_t clock_cycles(), global_time_ns() (measuring kernels only)
// Constants       kWarpSize = 32; kArch: 750, 800, ..., 900 (the emulator: 800)
#pragma once

#include "platform/types.h"

namespace cudabk {
constexpr int kWarpSize = 32;

struct alignas(8) u32x2 {
  uint32_t x, y;
};
struct alignas(16) u32x4 {
  uint32_t x, y, z, w;
};
struct alignas(8) f32x2 {
  float x, y;
};
struct alignas(16) f32x4 {
  float x, y, z, w;
};
}  // namespace cudabk

#ifdef __CUDACC_RTC__
#include "platform/device.h"
#else
#include "platform/host.h"
#endif
