#include "platform/host_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace cudabk::host {

namespace {

constexpr size_t kSharedAlignment = 128;
constexpr size_t kGuardBytes = 4096;  // on both sides of shared memory: poisoned under AddressSanitizer, else compared
constexpr size_t kTailBytes = 64 * 1024;  // behind it, for a kernel that takes a whole table too much
constexpr std::byte kUntouched{0xff};

uint64_t mix(uint64_t x) {  // a bijection with good avalanche (multiply, xor-shift)
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xd1342543de82ef95u;
  return x ^ (x >> 32);
}

}  // namespace

BlockRunner::BlockRunner() : threads_(kMaxThreads), warps_(kMaxWarps) {
  block_.runner = this;
  for (int i = 0; i < kMaxThreads; ++i) {
    Thread& thread = threads_[i];
    thread.x = i;
    thread.lane = i % kLanes;
    thread.warp = i / kLanes;
    thread.team = &warps_[i / kLanes];
    thread.block = &block_;
  }
}

BlockRunner::~BlockRunner() {
  if (arena_ != nullptr) {
    ASAN_UNPOISON_MEMORY_REGION(arena_, arena_bytes_);
    std::free(arena_);
  }
}

bool BlockRunner::prepare(const HostLaunch& launch) {
  launch_ = &launch;
  error_.clear();
  const size_t shared = (launch.shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  const size_t wanted = kGuardBytes + shared + kTailBytes;
  if (wanted > arena_bytes_) {
    if (arena_ != nullptr) {
      ASAN_UNPOISON_MEMORY_REGION(arena_, arena_bytes_);
      std::free(arena_);
    }
    arena_ = static_cast<std::byte*>(std::aligned_alloc(kSharedAlignment, wanted));
    arena_bytes_ = arena_ != nullptr ? wanted : 0;
    if (arena_ == nullptr) {
      error_ = fmt::format("{}: no memory for {} bytes of shared memory", launch.name, launch.shared_bytes);
      return false;
    }
  }
  ASAN_POISON_MEMORY_REGION(arena_, arena_bytes_);
  block_.shared = arena_ + kGuardBytes;
  block_.shared_bytes = launch.shared_bytes;
  fill_guards();
  ASAN_UNPOISON_MEMORY_REGION(block_.shared, launch.shared_bytes);
  std::copy(launch.grid, launch.grid + 3, block_.grid);
  block_.threads = static_cast<int>(launch.threads);
  return true;
}

// AddressSanitizer stops the first access, so that there is nothing to compare.
#if defined(__SANITIZE_ADDRESS__)
void BlockRunner::fill_guards() {}
bool BlockRunner::guards_hold() const { return true; }
#else
void BlockRunner::fill_guards() {
  std::memset(arena_, static_cast<int>(kUntouched), kGuardBytes);
  std::memset(block_.shared + block_.shared_bytes, static_cast<int>(kUntouched), kGuardBytes);
}
bool BlockRunner::guards_hold() const {
  const auto untouched = [](const std::byte* from) {
    return *from == kUntouched && std::memcmp(from, from + 1, kGuardBytes - 1) == 0;
  };
  return untouched(arena_) && untouched(block_.shared + block_.shared_bytes);
}
#endif

void BlockRunner::start_block(uint64_t linear) {
  block_.index[0] = static_cast<uint32_t>(linear % block_.grid[0]);
  block_.index[1] = static_cast<uint32_t>(linear / block_.grid[0] % block_.grid[1]);
  block_.index[2] = static_cast<uint32_t>(linear / block_.grid[0] / block_.grid[1]);
  for (int i = 0; i < block_.threads; ++i) {
    Thread& thread = threads_[i];
    thread.fiber = nullptr;
    thread.waits_at = Collective::kNone;
    thread.exited = false;
    thread.copies.clear();
    thread.committed_ends.clear();
  }
  const int warps = (block_.threads + kLanes - 1) / kLanes;
  for (int w = 0; w < warps; ++w) {
    const int lanes = std::min(kLanes, block_.threads - w * kLanes);
    Warp& warp = warps_[w];
    warp.lanes = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.ready = warp.lanes;
    warp.arrived = 0;
    warp.phase = 0;
  }
  ready_warps_ = warps == kMaxWarps ? ~0u : (1u << warps) - 1;
  exited_ = 0;
  at_barrier_ = 0;
  random_ = (mix(launch_->seed * 2 + 1) ^ mix(linear)) | 1;
  if (block_.shared_bytes > 0) {
    std::memset(block_.shared, 0xff, block_.shared_bytes);
  }
}

bool BlockRunner::run_block(uint64_t linear) {
  start_block(linear);
  run_threads();
  current = nullptr;
  if (error_.empty() && exited_ != block_.threads) {
    report_deadlock();
  }
  if (error_.empty() && !guards_hold()) {
    error_ = fmt::format("{}: shared memory was written outside of the {} bytes that the launch asks for", where(),
                         block_.shared_bytes);
  }
  if (!error_.empty()) {
    abandon();
    return false;
  }
  return true;
}

void BlockRunner::run_threads() {
  Thread* first = pick();
  enter(*first, main_);
}

// Any set bit of a non-zero mask, by the launch's order.
uint32_t BlockRunner::pick_bit(uint32_t mask) {
  switch (launch_->order) {
    case Order::kAscending:
      return std::countr_zero(mask);
    case Order::kDescending:
      return 31 - std::countl_zero(mask);
    case Order::kShuffled:
      break;
  }
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const uint32_t turn = static_cast<uint32_t>(random_ >> 40) & 31;
  return (std::countr_zero(std::rotr(mask, static_cast<int>(turn))) + turn) & 31;
}

Thread* BlockRunner::pick() {
  if (ready_warps_ == 0) {
    return nullptr;
  }
  const uint32_t w = pick_bit(ready_warps_);
  Warp& warp = warps_[w];
  const uint32_t lane = pick_bit(warp.ready);
  warp.ready &= ~(1u << lane);
  if (warp.ready == 0) {
    ready_warps_ &= ~(1u << w);
  }
  return &threads_[w * kLanes + lane];
}

// Switches from `from` to the fiber of `next`, giving it one if it has not started.
void BlockRunner::enter(Thread& next, Fiber& from) {
  if (next.fiber == nullptr) {
    if (idle_.empty()) {
      auto stack = FiberStack::create(static_cast<int>(stacks_.size()));
      if (stack == nullptr) {
        error_ = fmt::format("{}: no memory for the stack of thread {}", where(), next.x);
        if (&from != &main_) {
          switch_fiber(from, main_);
        }
        return;
      }
      stack->reset(&BlockRunner::fiber_main);
      idle_.push_back(&stack->fiber());
      stacks_.push_back(std::move(stack));
    }
    next.fiber = idle_.back();
    idle_.pop_back();
  }
  current = &next;
  next.waits_at = Collective::kNone;
  switch_fiber(from, *next.fiber);
}

// What a fiber does for ever: run the thread it was given, then the next that has not started, until all that is left
// are threads with fibers of their own.
void BlockRunner::fiber_main() {
  BlockRunner& runner = *current->block->runner;
  Fiber& self = *current->fiber;
  for (;;) {
    runner.launch_->run(runner.launch_->args);
    current->exited = true;
    ++runner.exited_;
    Thread* next = runner.pick();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &self;
      current = next;
      continue;
    }
    runner.idle_.push_back(&self);
    if (next == nullptr) {
      switch_fiber(self, runner.main_);
    } else {
      runner.enter(*next, self);
    }
  }
}

// The thread waits: lets others run until something makes it ready and picks it.
void BlockRunner::give_up(Thread& thread) {
  Thread* next = pick();
  if (next == &thread) {
    thread.waits_at = Collective::kNone;
    return;
  }
  Fiber& self = *thread.fiber;
  if (next == nullptr) {
    switch_fiber(self, main_);
  } else {
    enter(*next, self);
  }
}

void BlockRunner::arrive_block(Thread& thread) {
  thread.waits_at = Collective::kBlockSync;
  if (++at_barrier_ == block_.threads) {
    at_barrier_ = 0;
    const int warps = (block_.threads + kLanes - 1) / kLanes;
    for (int w = 0; w < warps; ++w) {
      warps_[w].ready = warps_[w].lanes;
    }
    ready_warps_ = warps == kMaxWarps ? ~0u : (1u << warps) - 1;
  }
  give_up(thread);
}

void BlockRunner::wait(Thread& thread, const void* barrier) {
  thread.waits_at = Collective::kBarrierWait;
  thread.waits_on = barrier;
  give_up(thread);
}

void BlockRunner::wake(const void* barrier) {
  for (int i = 0; i < block_.threads; ++i) {
    const Thread& thread = threads_[i];
    if (!thread.exited && thread.waits_at == Collective::kBarrierWait && thread.waits_on == barrier) {
      warps_[thread.warp].ready |= 1u << thread.lane;
      ready_warps_ |= 1u << thread.warp;
    }
  }
}

void complete_collective(Warp& warp);

void BlockRunner::arrive_warp(Thread& thread, Collective kind) {
  Warp& warp = *thread.team;
  thread.waits_at = kind;
  if (warp.arrived == 0) {
    warp.kind = kind;
  }
  if (warp.kind == kind) {  // otherwise this lane waits in vain, and the block ends with a report
    warp.arrived |= 1u << thread.lane;
    if (warp.arrived == warp.lanes) {
      complete_collective(warp);
      warp.phase ^= 1;
      warp.arrived = 0;
      warp.ready = warp.lanes;
      ready_warps_ |= 1u << thread.warp;
    }
  }
  give_up(thread);
}

void BlockRunner::fail(const char* what) {
  error_ = fmt::format("{}, thread {}: {}", where(), current->x, what);
  switch_fiber(*current->fiber, main_);
  __builtin_unreachable();  // a failed block's fibers are never resumed
}

// After a failure: forgets what every fiber was doing.
void BlockRunner::abandon() {
  idle_.clear();
  for (auto stack = stacks_.rbegin(); stack != stacks_.rend(); ++stack) {
    (*stack)->reset(&BlockRunner::fiber_main);
    idle_.push_back(&(*stack)->fiber());
  }
}

std::string BlockRunner::where() const {
  return fmt::format("{}: block ({}, {}, {})", launch_->name, block_.index[0], block_.index[1], block_.index[2]);
}

// "block (0, 0, 0): threads 0-15 wait at block_sync, threads 16-31 have exited".
void BlockRunner::report_deadlock() {
  constexpr int kMaxRuns = 8;
  std::string text = where() + ": not all threads reach the same barrier: ";
  int runs = 0;
  for (int first = 0; first < block_.threads;) {
    int last = first;
    const auto same = [&](const Thread& a, const Thread& b) {
      return a.exited == b.exited && a.waits_at == b.waits_at;
    };
    while (last + 1 < block_.threads && same(threads_[last + 1], threads_[first])) {
      ++last;
    }
    if (++runs > kMaxRuns) {
      text += ", ...";
      break;
    }
    const std::string who = first == last ? fmt::format("thread {}", first) : fmt::format("threads {}-{}", first, last);
    text += runs > 1 ? ", " : "";
    text += threads_[first].exited ? fmt::format("{} exited", who)
                                   : fmt::format("{} waiting at {}", who, collective_name(threads_[first].waits_at));
    first = last + 1;
  }
  error_ = std::move(text);
}

}  // namespace cudabk::host
