// Bulk copies to shared memory and the barriers they complete (sm_90): one thread moves any multiple of 16 bytes.
#pragma once

#include "platform/device_memory.h"

namespace cudabk {

// A barrier in shared memory, 8 bytes. A phase ends when `count` arrivals and all expected bytes have come; phases are
// waited for by parity, 0 first.
using SharedBarrier = uint64_t;

#if __CUDA_ARCH__ >= 900
__forceinline__ void barrier_init(SharedBarrier* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}
// After all inits, before a block_sync.
__forceinline__ void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__forceinline__ void barrier_arrive(SharedBarrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
// Arrives, and lets the phase wait for `bytes` of copies too.
__forceinline__ void barrier_expect(SharedBarrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
               : "memory");
}
__forceinline__ void barrier_wait(SharedBarrier* b, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=;\n"
      "}" ::"r"(shared_address(b)),
      "r"(parity)
      : "memory");
}
// Both addresses 16-byte aligned, bytes a multiple of 16; completes on `b`.
__forceinline__ void bulk_copy(void* shared, const void* global, int bytes, SharedBarrier* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(b))
               : "memory");
}
// Arrives when all of this thread's async copies (device_async.h) so far have come; one of the barrier's `count`.
__forceinline__ void barrier_arrive_after_copies(SharedBarrier* b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(b)) : "memory");
}
#endif

}  // namespace cudabk
