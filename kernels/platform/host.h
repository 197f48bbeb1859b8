// The primitives of platform.h on the emulated GPU. Every thread of a block is a fiber of one host thread; the
// primitives that need other threads post their operands and give up the processor until all have arrived.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/host_collectives.h"
#include "platform/host_memory.h"
#include "platform/host_numbers.h"
#include "platform/host_state.h"
#include "platform/host_warp_groups.h"

// On the host a kernel is a plain function that one fiber per thread runs; the bounds concern registers only.
#define KERNEL(name, threads) inline void name
#define KERNEL_MIN_BLOCKS(name, threads, min_blocks) inline void name

namespace cudabk {

constexpr int kArch = 800;

inline int thread_x() { return host::current->x; }
inline int lane() { return host::current->lane; }
inline int warp() { return host::current->warp; }
inline int block_x() { return static_cast<int>(host::current->block->index[0]); }
inline int block_y() { return static_cast<int>(host::current->block->index[1]); }
inline int block_z() { return static_cast<int>(host::current->block->index[2]); }
inline int grid_x() { return static_cast<int>(host::current->block->grid[0]); }
inline int grid_y() { return static_cast<int>(host::current->block->grid[1]); }
inline int grid_z() { return static_cast<int>(host::current->block->grid[2]); }

// Kernels of one stream run one after another here, so there is nothing to wait for.
inline void wait_for_previous_kernel() {}
inline void prefetch_l2(const void*) {}
inline void allow_next_kernel() {}

}  // namespace cudabk

#include "platform/warp_copies.h"
