// Clusters: blocks that run at the same time and read each other's shared memory (sm_90).
#pragma once

#include "platform/device_memory.h"

// KERNEL for grids whose blocks are clusters of `ClusterZ` along z; the grid's z is a multiple of it.
#define KERNEL_CLUSTER(name, ClusterZ, Threads) \
  __global__ void __cluster_dims__(1, 1, ClusterZ) __launch_bounds__(Threads) name

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
#endif

}  // namespace cudabk
