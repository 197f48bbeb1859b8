// The primitives of platform.h on a GPU, compiled by NVRTC. Architecture conditions live here and in the files included
// below, nowhere else. Helper functions of kernels need no annotation: NVRTC runs with device as the default space.
#pragma once

#include "platform/device_async.h"
#include "platform/device_bulk.h"
#include "platform/device_cluster.h"
#include "platform/device_convert.h"
#include "platform/device_memory.h"
#include "platform/device_mma.h"
#include "platform/device_wgmma.h"
#include "platform/device_wgmma_bf16.h"

// Declares a kernel of `Threads` threads per block at most; KERNEL_MIN_BLOCKS also bounds registers so that this many
// blocks fit on one SM.
#define KERNEL(name, Threads) __global__ void __launch_bounds__(Threads) name
#define KERNEL_MIN_BLOCKS(name, Threads, MinBlocksPerSm) __global__ void __launch_bounds__(Threads, MinBlocksPerSm) name

namespace cudabk {

constexpr int kArch = __CUDA_ARCH__;
constexpr uint32_t kAllLanes = 0xffffffffu;

// Indices.
__forceinline__ int thread_x() { return static_cast<int>(threadIdx.x); }
__forceinline__ int block_x() { return static_cast<int>(blockIdx.x); }
__forceinline__ int block_y() { return static_cast<int>(blockIdx.y); }
__forceinline__ int block_z() { return static_cast<int>(blockIdx.z); }
__forceinline__ int grid_x() { return static_cast<int>(gridDim.x); }
__forceinline__ int grid_y() { return static_cast<int>(gridDim.y); }
__forceinline__ int grid_z() { return static_cast<int>(gridDim.z); }
__forceinline__ int lane() { return static_cast<int>(threadIdx.x) & (kWarpSize - 1); }
__forceinline__ int warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }

// Barriers.
__forceinline__ void block_sync() { __syncthreads(); }
__forceinline__ void warp_sync() { __syncwarp(kAllLanes); }

// Shuffles: T is float, int32_t or uint32_t.
template <class T>
__forceinline__ T shuffle(T v, int source_lane) {
  return __shfl_sync(kAllLanes, v, source_lane);
}
template <class T>
__forceinline__ T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(kAllLanes, v, mask);
}
template <class T>
__forceinline__ T shuffle_down(T v, int delta) {
  return __shfl_down_sync(kAllLanes, v, static_cast<unsigned>(delta));
}
__forceinline__ bool warp_any(bool v) { return __any_sync(kAllLanes, v) != 0; }
__forceinline__ bool warp_all(bool v) { return __all_sync(kAllLanes, v) != 0; }
__forceinline__ uint32_t warp_max(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, v);
#else
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    v = max(v, shuffle_xor(v, mask));
  }
  return v;
#endif
}

// Integer.
__forceinline__ int dp4a(int a, int b, int c) { return __dp4a(a, b, c); }
// The C++ intrinsic has equal-sign forms only.
__forceinline__ int dp4a_us(uint32_t a, int b, int c) {
  int d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__forceinline__ uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector) { return __byte_perm(a, b, selector); }
// The compiler's intrinsic would clear bit 3 of each nibble.
__forceinline__ uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
}
// Blocks are of one dimension, which the compiler does not know.
__forceinline__ uint32_t in_register(uint32_t v) { return v | threadIdx.y; }
__forceinline__ int opaque(int v) {
  int r;
  asm("mov.b32 %0, %1;" : "=r"(r) : "r"(v));
  return r;
}
// The compiler would make two instructions of two constants.
__forceinline__ uint32_t and_or(uint32_t x, uint32_t mask, uint32_t bits) {
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(x), "r"(mask), "r"(bits));
  return r;
}
__forceinline__ uint32_t funnel_shift_right(uint32_t lo, uint32_t hi, uint32_t n) { return __funnelshift_r(lo, hi, n); }
__forceinline__ uint32_t count_bits(uint32_t v) { return static_cast<uint32_t>(__popc(static_cast<int>(v))); }

// Math.
__forceinline__ float abs_f(float v) { return fabsf(v); }
__forceinline__ float max_f(float a, float b) { return fmaxf(a, b); }
__forceinline__ float min_f(float a, float b) { return fminf(a, b); }
__forceinline__ float inverse_sqrt(float v) { return rsqrtf(v); }
__forceinline__ float exp_f(float v) { return expf(v); }
__forceinline__ float fast_exp(float v) { return __expf(v); }
__forceinline__ float fma_f(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__forceinline__ float divide(float a, float b) { return __fdiv_rn(a, b); }
__forceinline__ float add_rounded(float a, float b) { return __fadd_rn(a, b); }
__forceinline__ float mul_rounded(float a, float b) { return __fmul_rn(a, b); }
__forceinline__ bool is_finite(float v) { return (float_bits(v) & 0x7f800000u) != 0x7f800000u; }

// Atomics: the old value. memory_fence orders this thread's writes before later ones for the whole device.
__forceinline__ float atomic_add(float* p, float v) { return atomicAdd(p, v); }
__forceinline__ uint32_t atomic_add(uint32_t* p, uint32_t v) { return atomicAdd(p, v); }
__forceinline__ int32_t atomic_add(int32_t* p, int32_t v) { return atomicAdd(p, v); }
__forceinline__ void memory_fence() { __threadfence(); }

// Launch overlap. Blocks until every kernel this one depends on has finished and its writes are visible.
__forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the dependent kernel start once every block has said so or ended.
__forceinline__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Asks for the line of L2 that holds p. Needs no wait before: L2 is where all processors see the same data.
__forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Clocks.
__forceinline__ int64_t clock_cycles() { return clock64(); }
__forceinline__ int64_t global_time_ns() {
  int64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

}  // namespace cudabk

#if __CUDA_ARCH__ >= 900
#include "platform/device_warp_copies.h"
#else
#include "platform/warp_copies.h"
#endif
