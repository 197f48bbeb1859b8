// Asynchronous copies from global to shared memory (cp.async). Below sm_80 a copy is a plain load and store, done at
// issue, and the waits are empty; the barrier that a kernel needs after a wait makes it visible either way.
#pragma once

#include "platform/device_memory.h"

namespace cudabk {

namespace detail {

// The fallback: a typed copy, zeros when not valid.
template <class T>
__forceinline__ void plain_copy(void* shared, const void* global, bool valid) {
  T v{};
  if (valid) {
    v = *static_cast<const T*>(global);
  }
  *static_cast<T*>(shared) = v;
}

}  // namespace detail

// 16 bytes, past L1. When not `valid` nothing is read and zeros are written. Both addresses 16-byte aligned.
__forceinline__ void async_copy_16(void* shared, const void* global, bool valid) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  detail::plain_copy<u32x4>(shared, global, valid);
#endif
}
__forceinline__ void async_copy_16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
#else
  detail::plain_copy<u32x4>(shared, global, true);
#endif
}

// 8 and 4 bytes, through L1, aligned to their size.
__forceinline__ void async_copy_8(void* shared, const void* global, bool valid = true) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 8 : 0)
               : "memory");
#else
  detail::plain_copy<u32x2>(shared, global, valid);
#endif
}
__forceinline__ void async_copy_4(void* shared, const void* global, bool valid = true) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
#else
  detail::plain_copy<uint32_t>(shared, global, valid);
#endif
}

// Closes the group of this thread's copies since the last commit.
__forceinline__ void async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Returns when at most the N newest groups of this thread are still in flight.
template <int N>
__forceinline__ void async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

}  // namespace cudabk
