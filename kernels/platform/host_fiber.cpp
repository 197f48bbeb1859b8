#include "platform/host_fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cudabk::host {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 << 10;  // red zones make frames several times larger
void before_switch(Fiber& from, const Fiber& to) {
  __sanitizer_start_switch_fiber(&from.sanitizer_stack, to.low, to.bytes);
}
void after_switch(Fiber& self, Fiber& previous) {
  const void* low = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(self.sanitizer_stack, &low, &bytes);
  if (previous.bytes == 0) {
    previous.low = low;
    previous.bytes = bytes;
  }
}
void forget_frames(const Fiber& fiber) { __asan_unpoison_memory_region(fiber.low, fiber.bytes); }
#else
constexpr size_t kStackBytes = 64 << 10;
void before_switch(Fiber&, const Fiber&) {}
void after_switch(Fiber&, Fiber&) {}
void forget_frames(const Fiber&) {}
#endif

// Both fibers of a switch, passed along with it.
struct Switch {
  Fiber* from;
  Fiber* to;
};

void arrive(boost::context::detail::transfer_t transfer, Fiber& self) {
  Fiber& previous = *static_cast<Switch*>(transfer.data)->from;
  previous.context = transfer.fctx;
  after_switch(self, previous);
}

void fiber_start(boost::context::detail::transfer_t transfer) {
  Fiber& self = *static_cast<Switch*>(transfer.data)->to;
  arrive(transfer, self);
  self.entry();
}

}  // namespace

void switch_fiber(Fiber& from, Fiber& to) {
  Switch both{&from, &to};
  before_switch(from, to);
  arrive(boost::context::detail::jump_fcontext(to.context, &both), from);
}

std::unique_ptr<FiberStack> FiberStack::create(int number) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::unique_ptr<FiberStack> stack(new FiberStack);
  stack->map_bytes_ = page + kStackBytes + page;
  void* map =
      mmap(nullptr, stack->map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    return nullptr;
  }
  stack->map_ = map;
  if (mprotect(map, page, PROT_NONE) != 0) {
    return nullptr;
  }
  constexpr size_t kLine = 64;  // hardware: a cache line
  std::byte* low = static_cast<std::byte*>(map) + page;
  stack->top_ = low + kStackBytes + page - (static_cast<size_t>(number) * 5 * kLine) % page;
  stack->fiber_.low = low;
  stack->fiber_.bytes = static_cast<size_t>(stack->top_ - low);
  return stack;
}

FiberStack::~FiberStack() {
  if (map_ != nullptr) {
    forget_frames(fiber_);
    munmap(map_, map_bytes_);
  }
}

void FiberStack::reset(FiberEntry entry) {
  fiber_.entry = entry;
  forget_frames(fiber_);
  fiber_.sanitizer_stack = nullptr;
  fiber_.context = boost::context::detail::make_fcontext(top_, fiber_.bytes, fiber_start);
}

}  // namespace cudabk::host
