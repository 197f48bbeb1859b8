#include "backend/scratch_pool.h"

#include <algorithm>

namespace cudabk {
namespace {
constexpr int64_t kGranularity = 64 << 10;  // requests that grow a little reuse the same block
int64_t round_up(int64_t bytes) { return (bytes + kGranularity - 1) / kGranularity * kGranularity; }
}  // namespace

Result<ScratchPool::Lease> ScratchPool::lease(int64_t bytes) {
  if (bytes == 0) {
    return Lease();
  }
  bytes = round_up(bytes);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const bool fits = it->bytes() >= bytes && it->bytes() <= 2 * bytes;
    if (fits && (best == free_.end() || it->bytes() < best->bytes())) {
      best = it;
    }
  }
  if (best != free_.end()) {
    Memory memory = std::move(*best);
    free_.erase(best);
    cached_bytes_ -= memory.bytes();
    live_bytes_ += memory.bytes();
    return Lease(this, std::move(memory));
  }
  // A request that grows step by step must not pile up the blocks it has outgrown: at most twice what is needed.
  while (!free_.empty() && cached_bytes_ > live_bytes_ + bytes) {
    const auto smallest = std::min_element(free_.begin(), free_.end(),
                                           [](const Memory& a, const Memory& b) { return a.bytes() < b.bytes(); });
    cached_bytes_ -= smallest->bytes();
    free_.erase(smallest);
  }
  auto memory = device_.allocate(bytes);
  if (!memory.ok() && !free_.empty()) {
    free_.clear();
    cached_bytes_ = 0;
    memory = device_.allocate(bytes);
  }
  if (!memory.ok()) {
    return std::move(memory).error().with_context("scratch memory");
  }
  live_bytes_ += bytes;
  return Lease(this, std::move(memory).value());
}

void ScratchPool::put_back(Memory memory) {
  live_bytes_ -= memory.bytes();
  cached_bytes_ += memory.bytes();
  free_.push_back(std::move(memory));
}

}  // namespace cudabk
