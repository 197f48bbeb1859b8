// Launching a kernel on the emulated GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cudabk::host {

// The order in which the threads of a block run between two points where they wait; blocks follow the same order.
enum class Order { kAscending, kDescending, kShuffled };

struct HostLaunch {
  void (*run)(const std::byte* args) = nullptr;  // the kernel, for one thread
  const std::byte* args = nullptr;               // its argument struct, aligned as the struct asks
  std::string_view name;                         // for messages
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 1;       // per block, 1 ... 1024
  uint32_t shared_bytes = 0;  // per block; starts as 0xff bytes
  Order order = Order::kAscending;
  uint64_t seed = 0;  // of Order::kShuffled
};

// Runs all blocks, spread over the processor's cores, and returns when they have ended. The error names kernel, block
// and threads: a barrier or collective that not all threads reached, or a misaligned access. Blocks of the launch
// that had not started when it occurred are not run.
std::optional<std::string> run_launch(const HostLaunch& launch);

// Runs `kernel` directly, without an instance list. `shape` gives everything but the kernel and its arguments.
template <class Args>
std::optional<std::string> run_kernel(void (*kernel)(Args), const Args& args, HostLaunch shape) {
  struct Call {
    void (*kernel)(Args);
    Args args;
  };
  const Call call{kernel, args};
  shape.args = reinterpret_cast<const std::byte*>(&call);
  shape.run = [](const std::byte* bytes) {
    const Call& mine = *reinterpret_cast<const Call*>(bytes);
    mine.kernel(mine.args);
  };
  return run_launch(shape);
}

// Calls body() on up to `participants` threads at once, the caller among them, and waits for all. When another thread
// is using the pool the caller alone does the work, so the body must take its work from a shared counter.
void run_on_cores(uint64_t participants, const std::function<void()>& body);
// Threads that run_on_cores can use.
int core_count();

}  // namespace cudabk::host
