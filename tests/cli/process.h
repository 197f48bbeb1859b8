// Runs a program without a shell and captures what it writes.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace cudabk::test {

struct ProcessResult {
  int status = -1;  // exit status; 128 + signal when one ended it
  std::string out, err;
};

struct ProcessOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  double interrupt_after_s = 0;  // SIGINT after this time, counted from the first byte on stdout or stderr
  std::string interrupt_when;    // ... or as soon as stdout or stderr contains this
  std::string when_file;         // ... or as soon as this file is there
  int signal = SIGINT;           // in place of SIGINT
  std::string stdout_file;       // opened for writing in place of the pipe that fills ProcessResult::out
  double limit_s = 120;          // then SIGKILL
};

// kCudabk with these arguments, on the emulated device unless the arguments say otherwise, with no cache folder.
ProcessResult run_cudabk(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace cudabk::test
