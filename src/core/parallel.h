// Splitting independent work over threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/result.h"

namespace cudabk {

// Runs work(begin, end) over contiguous parts of [0, count) and returns the first failure in order of the parts.
// `part`: what pays for a thread; `threads`: 0 means all cores. Blocks until all parts are done. `work` returns Status
// and is called from several threads at once.
template <class Work>
Status in_parallel(int64_t count, int64_t part, int threads, Work work) {
  const int64_t cores = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(1, part), 1, cores);
  const int64_t step = (count + parts - 1) / parts;
  std::vector<Status> results(static_cast<size_t>(parts));
  std::vector<std::thread> workers;
  for (int64_t i = 1; i < parts; ++i) {
    workers.emplace_back(
        [&, i] { results[static_cast<size_t>(i)] = work(std::min(count, i * step), std::min(count, (i + 1) * step)); });
  }
  results[0] = work(int64_t{0}, std::min(count, step));
  for (std::thread& worker : workers) {
    worker.join();
  }
  for (Status& result : results) {
    CUDABK_TRY(std::move(result));
  }
  return success();
}

}  // namespace cudabk
