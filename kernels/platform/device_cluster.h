// Clusters: blocks that run at the same time and read each other's shared memory (sm_90).
#pragma once

#include "platform/device_bulk.h"

// KERNEL for grids whose blocks are clusters of `ClusterZ` along z; the grid's z is a multiple of it.
#define KERNEL_CLUSTER(name, ClusterZ, Threads) \
  __global__ void __cluster_dims__(1, 1, ClusterZ) __launch_bounds__(Threads) name

// The same along x.
#define KERNEL_CLUSTER_X(name, ClusterX, Threads) \
  __global__ void __cluster_dims__(ClusterX, 1, 1) __launch_bounds__(Threads) name

namespace cudabk {

#if __CUDA_ARCH__ >= 900
// All threads of all blocks of the cluster; what they wrote to shared memory before is visible after.
__forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
// The same without that: for memory that was read to be written again, or left.
__forceinline__ void cluster_sync_unordered() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
// A float of the block of this number in the cluster, where it is in this block.
__forceinline__ float load_cluster(const float* own, int block) {
  float v;
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [there];\n"
      "}"
      : "=f"(v)
      : "r"(shared_address(own)), "r"(block)
      : "memory");
  return v;
}
// barrier_arrive at the barrier of the block of this number in the cluster, where `own` is in this block.
__forceinline__ void barrier_arrive_cluster(SharedBarrier* own, int block) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(own)),
      "r"(block)
      : "memory");
}
// bulk_copy into the blocks of the cluster whose bits are set in `blocks`, each at the same place and barrier.
__forceinline__ void bulk_copy_cluster(void* shared, const void* global, int bytes, SharedBarrier* b, int blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(b)), "h"(static_cast<uint16_t>(blocks))
      : "memory");
}
#endif

}  // namespace cudabk
