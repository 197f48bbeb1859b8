// Runs the blocks of a launch, one at a time, on one host thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/host_fiber.h"
#include "platform/host_launch.h"
#include "platform/host_state.h"

namespace cudabk::host {

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;

  // Sets aside shared memory for the blocks of `launch`, which must outlive the calls of run_block. False when memory
  // is short.
  bool prepare(const HostLaunch& launch);
  // Runs block `linear` (x fastest) to its end. False when it failed: error() says why.
  bool run_block(uint64_t linear);
  const std::string& error() const { return error_; }

  // For the primitives, on the running fiber.
  void arrive_warp(Thread& thread, Collective kind);
  void arrive_block(Thread& thread);
  // Lets others run until wake() is called for this barrier.
  void wait(Thread& thread, const void* barrier);
  void wake(const void* barrier);
  [[noreturn]] void fail(const char* what);

 private:
  static void fiber_main();
  void start_block(uint64_t linear);
  void run_threads();
  Thread* pick();
  uint32_t pick_bit(uint32_t mask);
  void give_up(Thread& thread);
  void enter(Thread& next, Fiber& from);
  void fill_guards();
  bool guards_hold() const;
  void abandon();
  void report_deadlock();
  std::string where() const;

  const HostLaunch* launch_ = nullptr;
  Block block_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  uint32_t ready_warps_ = 0;  // warps with a lane that can run
  int exited_ = 0;
  int at_barrier_ = 0;  // threads waiting at block_sync
  uint64_t random_ = 1;
  std::string error_;

  Fiber main_;
  std::vector<std::unique_ptr<FiberStack>> stacks_;
  std::vector<Fiber*> idle_;  // fibers without a thread

  std::byte* arena_ = nullptr;
  size_t arena_bytes_ = 0;
};

}  // namespace cudabk::host
