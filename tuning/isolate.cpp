#include "tuning/isolate.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "tuning/journal.h"

namespace cudabk {
namespace {

constexpr int kExitInternal = 70;
constexpr auto kPoll = std::chrono::milliseconds(20);

struct Ending {
  int status = 0;     // exit status, where it exited
  std::string death;  // why it counts as dead; empty after an orderly exit
};

uintmax_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

Ending ending_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return {0, fmt::format("killed by signal {} ({})", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)))};
  }
  const int status = WEXITSTATUS(wait_status);
  return {status, status == kExitInternal ? "the process ended with an internal error" : ""};
}

// Waits for the child; kills it when the journal stands still for too long. An interruption is handed on, once.
Ending wait_for(pid_t child, const SuperviseOptions& options) {
  using Clock = std::chrono::steady_clock;
  uintmax_t size = size_of(options.journal);
  Clock::time_point moved = Clock::now();
  bool told = false;
  for (;;) {
    int status = 0;
    if (const pid_t done = waitpid(child, &status, WNOHANG); done == child) {
      return ending_of(status);
    }
    if (const uintmax_t now = size_of(options.journal); now != size) {
      size = now;
      moved = Clock::now();
    }
    if (!told && options.interrupted != nullptr && *options.interrupted) {
      kill(child, SIGINT);
      told = true;
      moved = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - moved).count() > options.hang_s) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {0, fmt::format("no progress for {} s", options.hang_s)};
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Result<pid_t> start(const SuperviseOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& word : options.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  // In a group of its own: a terminal's Ctrl-C comes to the supervisor, which hands it on, and not twice.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failed = posix_spawn(&child, arguments[0], nullptr, &attributes, arguments.data(), options.environment);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return internal_error(fmt::format("{} cannot be started: {}", options.command[0], std::strerror(failed)));
  }
  return child;
}

}  // namespace

void end_with_supervisor() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

Result<int> supervise(const SuperviseOptions& options) {
  std::set<std::string> blamed;
  for (int run = 0; run <= options.max_restarts; ++run) {
    CUDABK_ASSIGN(const pid_t child, start(options));
    const Ending ending = wait_for(child, options);
    const bool stopping = options.interrupted != nullptr && *options.interrupted;
    if (ending.death.empty() || stopping) {
      return ending.death.empty() ? ending.status : kExitInternal;
    }
    const Result<JournalEntry> entry = quarantine_last(options.journal, ending.death);
    if (!entry.ok()) {
      if (ending.status == kExitInternal) {
        return kExitInternal;  // it has said what went wrong
      }
      return internal_error(fmt::format("the tuner's process died ({}) outside of any candidate", ending.death));
    }
    const std::string name =
        fmt::format("{} {} {} {}", entry->op, entry->key, shape_label(entry->shape), entry->candidate.text());
    if (!blamed.insert(name).second) {
      return internal_error(fmt::format("{} brought the process down again ({})", name, ending.death));
    }
    if (options.notice) {
      options.notice(fmt::format("{}: quarantined: {}; going on without it", name, ending.death));
    }
  }
  return internal_error(fmt::format("given up after {} restarts", options.max_restarts));
}

}  // namespace cudabk
