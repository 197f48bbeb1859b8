// Runs the tuner in a child process, so that a candidate that crashes or hangs costs one restart and not the run.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

struct SuperviseOptions {
  std::vector<std::string> command;    // program and arguments; it writes to `journal` before each candidate runs
  char* const* environment = nullptr;  // handed on to the child
  std::filesystem::path journal;
  double hang_s = 120;  // without a new journal line: the child is killed
  int max_restarts = 100;
  const std::atomic<bool>* interrupted = nullptr;  // the child then gets SIGINT, and hang_s to end
  std::function<void(std::string_view)> notice;    // one line per quarantined candidate; may be empty
};

// Blocks. Restarts the child after a crash, a hang or an internal error (exit 70) that the journal pins on a candidate,
// which is quarantined; returns the exit status of the first run that ended in any other way. kInternal when a death
// cannot be pinned on a candidate, or the same one is blamed twice.
Result<int> supervise(const SuperviseOptions& options);

// For the child: SIGTERM when the supervisor is gone.
void end_with_supervisor();

}  // namespace cudabk
