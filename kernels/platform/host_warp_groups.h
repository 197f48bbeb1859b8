// Barriers in shared memory, bulk copies, warp-group products and clusters of the emulated GPU; contracts:
// device_bulk.h, device_wgmma.h, device_cluster.h. Copies and products are carried out at issue, and a cluster is one
// block.
#pragma once

#include "platform/host_collectives.h"
#include "platform/host_memory.h"
#include "platform/host_numbers.h"
#include "platform/host_state.h"

#define KERNEL_CLUSTER(name, cluster, threads) inline void name
#define KERNEL_CLUSTER_X(name, cluster, threads) inline void name

namespace cudabk {

// ---- barriers ----

using SharedBarrier = uint64_t;

void barrier_init(SharedBarrier* b, int count);
inline void barrier_init_done() {}
void barrier_arrive(SharedBarrier* b);
void barrier_expect(SharedBarrier* b, int bytes);
void barrier_wait(SharedBarrier* b, int parity);
void bulk_copy(void* shared, const void* global, int bytes, SharedBarrier* b);
void barrier_arrive_after_copies(SharedBarrier* b);

// ---- products ----

constexpr bool has_warp_groups() { return true; }

inline uint64_t wgmma_operand(const void* shared, int k_stride, int n_stride) {
  return static_cast<uint64_t>(shared_address(shared) >> 4) | static_cast<uint64_t>(k_stride >> 4) << 16 |
         static_cast<uint64_t>(n_stride >> 4) << 32;
}
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int N>
inline void wgmma_wait() {}

namespace host {

// Adds this lane's part of a warp's 16 rows times `sums` / 4 tiles of 8 columns. Number: f16 or bf16.
template <class Number>
void multiply_group(float* d, int sums, const uint32_t (&a)[4], uint64_t b);

}  // namespace host

template <int N>
inline void wgmma_f16(float (&d)[N], const uint32_t (&a)[4], uint64_t b) {
  host::multiply_group<f16>(d, N, a, b);
}
template <int N>
inline void wgmma_bf16(float (&d)[N], const uint32_t (&a)[4], uint64_t b) {
  host::multiply_group<bf16>(d, N, a, b);
}

// ---- clusters ----

inline void cluster_sync() { block_sync(); }
inline void cluster_sync_unordered() { block_sync(); }
inline float load_cluster(const float* own, int block) {
  if (block != 0) {
    host::fail("a cluster of more than one block");
  }
  return *own;
}
inline void barrier_arrive_cluster(SharedBarrier* own, int block) {
  if (block != 0) {
    host::fail("a cluster of more than one block");
  }
  barrier_arrive(own);
}
inline void bulk_copy_cluster(void* shared, const void* global, int bytes, SharedBarrier* b, int blocks) {
  if (blocks != 1) {
    host::fail("a cluster of more than one block");
  }
  bulk_copy(shared, global, bytes, b);
}

}  // namespace cudabk
