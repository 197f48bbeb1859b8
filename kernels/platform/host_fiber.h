// Stacks and switches between them. A switch costs a few nanoseconds; AddressSanitizer is told of each.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <memory>

namespace cudabk::host {

using FiberEntry = void (*)();

// A stack and where its execution stands. The host thread's own stack is one too (`low` unknown until the first
// switch away from it).
struct Fiber {
  boost::context::detail::fcontext_t context = nullptr;
  const void* low = nullptr;  // lowest usable address
  size_t bytes = 0;
  FiberEntry entry = nullptr;       // what it runs; never returns
  void* sanitizer_stack = nullptr;  // AddressSanitizer's companion while switched away
};

// A fiber with its own stack, below which lies an unmapped page. `number` spreads the stacks' tops over the cache's
// sets. Null when the address space is exhausted.
class FiberStack {
 public:
  static std::unique_ptr<FiberStack> create(int number);
  FiberStack(const FiberStack&) = delete;
  ~FiberStack();

  Fiber& fiber() { return fiber_; }
  // Makes the next switch to this fiber call `entry` on an empty stack, whatever it did before.
  void reset(FiberEntry entry);

 private:
  FiberStack() = default;
  Fiber fiber_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  std::byte* top_ = nullptr;
};

// Leaves `from` (the running fiber) for `to`; returns when something switches back.
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace cudabk::host
