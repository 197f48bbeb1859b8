#include "process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>

namespace cudabk::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    std::abort();
  }
  return {ends[0], ends[1]};
}

[[noreturn]] void become(const std::vector<std::string>& words, const ProcessOptions& options, int out, int err) {
  dup2(options.stdout_file.empty() ? out : open(options.stdout_file.c_str(), O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  // What this machine's user has tuned or set is no part of a test.
  setenv("XDG_DATA_HOME", (testing::TempDir() + "cudabk_without_profiles").c_str(), 1);
  unsetenv("CUDABK_PROFILE");
  unsetenv("CUDABK_DEVICE");
  for (const auto& [name, value] : options.environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) {
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return n > 0;
}

}  // namespace

ProcessResult run_cudabk(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  std::vector<std::string> words{CUDABK_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ProcessOptions own = options;
  own.environment.insert(own.environment.begin(), {{"CUDABK_DEVICE", "host"}, {"CUDABK_PROFILE", ""}});
  const Pipe out = make_pipe(), err = make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    become(words, own, out.write, err.write);
  }
  close(out.write);
  close(err.write);
  ProcessResult result;
  const Clock::time_point start = Clock::now();
  std::array<pollfd, 2> fds{pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  bool interrupted = false;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    poll(fds.data(), fds.size(), 20);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd >= 0 && fds[i].revents != 0 && !drain(fds[i].fd, i == 0 ? result.out : result.err)) {
        fds[i].fd = -1;
      }
    }
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    const bool seen = !own.interrupt_when.empty() && (result.out.find(own.interrupt_when) != std::string::npos ||
                                                      result.err.find(own.interrupt_when) != std::string::npos);
    const bool there = !own.when_file.empty() && access(own.when_file.c_str(), F_OK) == 0;
    if (!interrupted && (seen || there || (own.interrupt_after_s > 0 && elapsed > own.interrupt_after_s))) {
      kill(child, own.signal);
      interrupted = true;
    }
    if (elapsed > own.limit_s) {
      kill(child, SIGKILL);
    }
  }
  close(out.read);
  close(err.read);
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace cudabk::test
