#include "platform/host_launch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "platform/host_runner.h"

namespace cudabk::host {

namespace {

// Threads that sleep between calls. More than this many would only use up address space for stacks.
constexpr int kMaxCores = 16;

class CorePool {
 public:
  ~CorePool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) {
      worker.join();
    }
  }

  void run(uint64_t participants, const std::function<void()>& body) {
    const int helpers = static_cast<int>(std::min<uint64_t>(participants, core_count())) - 1;
    std::unique_lock busy(busy_, std::try_to_lock);
    if (helpers <= 0 || !busy.owns_lock()) {
      body();
      return;
    }
    {
      std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < helpers) {
        workers_.emplace_back([this] { work(); });
      }
      body_ = &body;
      wanted_ = helpers;
    }
    wake_.notify_all();
    body();
    std::unique_lock lock(mutex_);
    wanted_ = 0;  // those that have not begun need not
    done_.wait(lock, [this] { return running_ == 0; });
    body_ = nullptr;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || wanted_ > 0; });
      if (stop_) {
        return;
      }
      --wanted_;
      ++running_;
      const std::function<void()>* body = body_;
      lock.unlock();
      (*body)();
      lock.lock();
      if (--running_ == 0) {
        done_.notify_all();
      }
    }
  }

  std::mutex busy_;  // held by the thread whose work the pool does
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  const std::function<void()>* body_ = nullptr;
  int wanted_ = 0, running_ = 0;
  bool stop_ = false;
};

CorePool& core_pool() {
  static CorePool pool;
  return pool;
}

// Not thread_local: a destructor at the thread's end would keep a library that holds this from being unloaded. A thread
// that gets the id of one that is gone has its place in memory too, and takes its runner over.
BlockRunner& runner_of_this_thread() {
  static std::mutex mutex;
  static std::map<std::thread::id, std::unique_ptr<BlockRunner>> runners;
  const std::lock_guard lock(mutex);
  std::unique_ptr<BlockRunner>& runner = runners[std::this_thread::get_id()];
  if (runner == nullptr) {
    runner = std::make_unique<BlockRunner>();
  }
  return *runner;
}

// The block that runs as number `i` of `count`, by the launch's order.
class BlockOrder {
 public:
  BlockOrder(const HostLaunch& launch, uint64_t count) : order_(launch.order), count_(count) {
    if (order_ != Order::kShuffled) {
      return;
    }
    first_ = launch.seed % count;
    step_ = (launch.seed * 2654435761u) % count | 1;
    while (std::gcd(step_, count) != 1) {
      ++step_;
    }
  }
  uint64_t operator()(uint64_t i) const {
    switch (order_) {
      case Order::kAscending:
        return i;
      case Order::kDescending:
        return count_ - 1 - i;
      case Order::kShuffled:
        break;
    }
    return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step_ + first_) % count_);
  }

 private:
  Order order_;
  uint64_t count_, first_ = 0, step_ = 1;
};

}  // namespace

int core_count() {
  static const int count = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxCores);
  return count;
}

void run_on_cores(uint64_t participants, const std::function<void()>& body) { core_pool().run(participants, body); }

std::optional<std::string> run_launch(const HostLaunch& launch) {
  const uint64_t count = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (count == 0 || launch.threads == 0) {
    return std::nullopt;
  }
  const BlockOrder order(launch, count);
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<std::string> error;
  run_on_cores(count, [&] {
    BlockRunner& runner = runner_of_this_thread();
    bool good = runner.prepare(launch);
    while (good && !failed.load(std::memory_order_relaxed)) {
      const uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) {
        return;
      }
      good = runner.run_block(order(i));
    }
    if (!good) {
      failed = true;
      std::lock_guard lock(mutex);
      if (!error) {
        error = runner.error();
      }
    }
  });
  return error;
}

}  // namespace cudabk::host
