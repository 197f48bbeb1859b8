// Loads, stores, shared memory, asynchronous copies, atomics and clocks of the emulated GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>

#include "platform/host_state.h"
#include "platform/types.h"

namespace cudabk {

namespace host {

// The GPU faults on an access that is not naturally aligned; here it ends the launch with an error.
template <size_t Bytes>
inline void check_aligned(const void* address, const char* what) {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  if (reinterpret_cast<uintptr_t>(address) % Bytes != 0) [[unlikely]] {
    fail(what);
  }
}

template <class T>
inline T load(const T* address) {
  check_aligned<sizeof(T)>(address, "misaligned load");
  T value;
  std::memcpy(static_cast<void*>(&value), static_cast<const void*>(address), sizeof(T));
  return value;
}

// Blocks of one launch run on several host threads, so atomics are real.
template <class T>
inline T fetch_add(T* address, T value) {
  check_aligned<sizeof(T)>(address, "misaligned atomic");
  return std::atomic_ref<T>(*address).fetch_add(value);
}

void enqueue_copy(const AsyncCopy& copy);
void commit_copies();
// Carries out all committed groups but the newest `in_flight`.
void complete_copies(size_t in_flight);

template <int Bytes>
inline void async_copy(void* shared, const void* global, bool valid) {
  check_aligned<Bytes>(shared, "misaligned destination of an async copy");
  if (valid) {
    check_aligned<Bytes>(global, "misaligned source of an async copy");
  }
  enqueue_copy({shared, valid ? global : nullptr, Bytes});
}

}  // namespace host

template <class T>
inline T* shared_memory() {
  return reinterpret_cast<T*>(host::current->block->shared);
}

// Shared memory by 32-bit addresses: places in the block's.
inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(p) - host::current->block->shared);
}
inline uint32_t shared_word(uint32_t address) {
  return *reinterpret_cast<const uint32_t*>(host::current->block->shared + address);
}
inline uint32_t shared_half(uint32_t address) {
  return *reinterpret_cast<const uint16_t*>(host::current->block->shared + address);
}

template <class T>
inline void load_shared_if(bool wanted, const T* address, T& v) {
  if (wanted) {
    v = host::load(address);
  }
}
template <class T>
inline T load_readonly(const T* address) {
  return host::load(address);
}
template <class T>
inline T load_fresh(const T* address) {
  return host::load(address);
}
template <class T>
inline T load_streaming(const T* address) {
  return host::load(address);
}
template <class T>
inline void store_whole(T* address, T value) {
  host::check_aligned<sizeof(T)>(address, "misaligned store");
  std::memcpy(static_cast<void*>(address), static_cast<const void*>(&value), sizeof(T));
}
template <class T>
inline void store_streaming(T* address, T value) {
  host::check_aligned<sizeof(T)>(address, "misaligned store");
  std::memcpy(static_cast<void*>(address), static_cast<const void*>(&value), sizeof(T));
}

inline void async_copy_16(void* shared, const void* global, bool valid) { host::async_copy<16>(shared, global, valid); }
inline void async_copy_16(void* shared, const void* global) { host::async_copy<16>(shared, global, true); }
inline void async_copy_8(void* shared, const void* global, bool valid) { host::async_copy<8>(shared, global, valid); }
inline void async_copy_8(void* shared, const void* global) { host::async_copy<8>(shared, global, true); }
inline void async_copy_4(void* shared, const void* global, bool valid) { host::async_copy<4>(shared, global, valid); }
inline void async_copy_4(void* shared, const void* global) { host::async_copy<4>(shared, global, true); }
inline void async_commit() { host::commit_copies(); }
template <int N>
inline void async_wait() {
  host::complete_copies(N);
}

inline float atomic_add(float* address, float value) { return host::fetch_add(address, value); }
inline uint32_t atomic_add(uint32_t* address, uint32_t value) { return host::fetch_add(address, value); }
inline int32_t atomic_add(int32_t* address, int32_t value) { return host::fetch_add(address, value); }
inline void memory_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

inline int64_t global_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline int64_t clock_cycles() { return global_time_ns(); }  // one cycle is a nanosecond here

}  // namespace cudabk
