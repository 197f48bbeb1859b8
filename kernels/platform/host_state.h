// What the emulated GPU knows of the block that is running: its threads, its warps, and what they wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabk::host {

constexpr int kLanes = 32;         // hardware: threads of a warp
constexpr int kMaxThreads = 1024;  // hardware: threads of a block
constexpr int kMaxWarps = kMaxThreads / kLanes;

// Points at which threads wait for one another. All lanes of a warp (all threads of a block) must reach the same kind.
enum class Collective : uint8_t {
  kNone,
  kBlockSync,
  kWarpSync,
  kShuffle,
  kShuffleXor,
  kShuffleDown,
  kWarpAny,
  kWarpAll,
  kMmaF16K16,
  kMmaBf16K16,
  kMmaF16K8,
  kMmaS8K32,
  kMmaS8K16,
  kMmaS8M8K16,
  kLdmatrix1,
  kLdmatrix2,
  kLdmatrix4,
  kLdmatrix1Trans,
  kLdmatrix2Trans,
  kLdmatrix4Trans,
  kWgmma,
  kBarrierWait,  // of one thread
};

// The primitive's name as kernels write it.
const char* collective_name(Collective kind);

// Operands and results of one collective of a warp.
struct Exchange {
  uint32_t word[kLanes];    // shuffles, votes
  uint32_t in[kLanes][8];   // fragments (A then B), or a row address in the first two words
  uint32_t out[kLanes][4];  // filled by the lane that arrives last
};

struct Warp {
  uint32_t lanes = 0;    // lanes that exist
  uint32_t arrived = 0;  // lanes waiting at `kind`
  uint32_t ready = 0;    // lanes that can run
  Collective kind = Collective::kNone;
  // A lane can be at most one collective ahead of the others, so two buffers suffice.
  int phase = 0;
  Exchange exchange[2];
};

// An asynchronous copy that was issued and not yet carried out. `from` is null for a zero fill.
struct AsyncCopy {
  void* to;
  const void* from;
  int bytes;
};

class BlockRunner;
struct Fiber;

struct Block {
  uint32_t index[3] = {0, 0, 0};
  uint32_t grid[3] = {1, 1, 1};
  int threads = 0;
  std::byte* shared = nullptr;
  uint32_t shared_bytes = 0;
  BlockRunner* runner = nullptr;
};

struct Thread {
  int x = 0, lane = 0, warp = 0;
  Warp* team = nullptr;
  Block* block = nullptr;
  Fiber* fiber = nullptr;  // null: not started yet
  Collective waits_at = Collective::kNone;
  const void* waits_on = nullptr;  // the barrier, for kBarrierWait
  bool exited = false;
  std::vector<AsyncCopy> copies;       // issued, oldest first
  std::vector<size_t> committed_ends;  // of each committed group, an index into `copies`
};

// The emulated thread that runs on this host thread. Fibers never move between host threads.
inline constinit thread_local Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

// Waits until all lanes of the warp have arrived at `kind`; the last one carries the operation out.
void arrive_warp(Collective kind);
void arrive_block();
// Ends the whole launch with an error that names kernel, block and the calling thread.
[[noreturn]] void fail(const char* what);

inline Exchange& open_exchange() {
  Warp& team = *current->team;
  return team.exchange[team.phase];
}

}  // namespace cudabk::host
