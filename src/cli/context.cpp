// What the subcommands share: environment, device, profile, output channels, exit status.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/command.h"
#include "core/file.h"
#include "core/text.h"
#include "tuning/family_set.h"

namespace cudabk::cli {
namespace {

constexpr int kExitInternal = 70;
constexpr int kExitInterrupted = 130;
// If several apply, the first in this order wins (docs/gating.md).
constexpr int kPrecedence[] = {kExitInterrupted, kExitInternal, 2, 6, 5, 1, 4, 3};

std::atomic<bool> interrupted_flag{false};

// The first Ctrl-C, SIGTERM as CI systems send it, or SIGHUP of a terminal that is gone asks for partial results, a
// second one ends the process at once.
void on_interrupt(int) {
  if (interrupted_flag.exchange(true)) {
    _exit(kExitInterrupted);
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// $XDG_..._HOME/cudabk, or the default below $HOME; empty without either.
std::string user_folder(const char* xdg, const char* below_home) {
  if (const std::string base = environment(xdg); !base.empty()) {
    return base + "/cudabk";
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return home + "/" + below_home + "/cudabk";
  }
  return "";
}

// What fits on one line of the terminal: a longer one would wrap, and only its last part be overwritten.
size_t progress_columns() {
  constexpr size_t kMost = 100;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? std::min(kMost, static_cast<size_t>(size.ws_col) - 1) : kMost;
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported:
      return 2;
    case ErrorKind::kInconclusive:
      return 3;
    case ErrorKind::kNothing:
      return 4;
    case ErrorKind::kWrongOutput:
      return 5;
    case ErrorKind::kUnfit:
      return 6;
    case ErrorKind::kInternal:
      return kExitInternal;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
  }
  return kExitInternal;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  while (!line.empty() && line.back() == ' ') {
    line.pop_back();
  }
  return line;
}

Status write_all(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    return invalid(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  return success();
}

}  // namespace

CliContext::CliContext() {
  if (const std::string device = environment("CUDABK_DEVICE"); !device.empty()) {
    device_name = device;
  }
  profile_file = environment("CUDABK_PROFILE");
  device_options.cache_dir = user_folder("XDG_CACHE_HOME", ".cache");
  device_options.interrupted = &interrupted_flag;
  const std::string cuda_home = environment("CUDA_HOME");
  device_options.toolkit_dir = cuda_home.empty() ? environment("CUDA_PATH") : cuda_home;
  if (const std::string data = user_folder("XDG_DATA_HOME", ".local/share"); !data.empty()) {
    profile_dir = data + "/profiles";
  }
  terminal_ = isatty(STDERR_FILENO) != 0;
  color = isatty(STDOUT_FILENO) != 0 && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) {  // nohup
    std::signal(SIGHUP, SIG_IGN);
  }
}

CliContext::~CliContext() { clear_progress(); }

const std::atomic<bool>& CliContext::interrupted() { return interrupted_flag; }

Result<Device*> CliContext::device() {
  if (device_ != nullptr) {
    return device_.get();
  }
  std::string name = device_name;
  if (name == "auto") {
    const Result<int> gpus = cuda_device_count();
    if (!gpus.ok() || *gpus == 0) {
      name = "host";
      fallback_note_ =
          fmt::format("note: no usable GPU ({}); using the emulated device, whose times say nothing about a GPU",
                      gpus.ok() ? "none found" : gpus.error().message);
    }
  }
  CUDABK_ASSIGN(device_, open_device(name, device_options));
  return device_.get();
}

Result<const Profile*> CliContext::profile() {
  if (profile_ != nullptr) {
    return static_cast<const Profile*>(profile_.get());
  }
  CUDABK_ASSIGN(Device * dev, device());
  const FamilySet families = family_set();
  note_fallback();
  CUDABK_ASSIGN(Profile found, find_profile(dev->info(), profile_file, profile_dir, families));
  for (const std::string& warning : found.warnings) {
    notice("warning: " + warning);
  }
  profile_ = std::make_unique<Profile>(std::move(found));
  return static_cast<const Profile*>(profile_.get());
}

void CliContext::print(std::string_view text) {
  note_fallback();
  clear_progress();
  if (machine_stdout) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    return;
  }
  if (const Status written = write_all(stdout, text); !written.ok() && !print_failed_) {
    print_failed_ = true;  // said once, however many lines follow
    note_error(written.error());
  }
}

void CliContext::note_fallback() {
  if (!fallback_note_.empty()) {
    notice(std::exchange(fallback_note_, ""));
  }
}

void CliContext::notice(std::string_view line) {
  if (quiet) {
    return;
  }
  clear_progress();
  const std::string text = one_line(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void CliContext::show_progress(std::string_view line) {
  if (!progress || quiet) {
    return;
  }
  if (line.empty()) {
    clear_progress();
    return;
  }
  if (!terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_plain_progress_ >= kPlainProgressSeconds) {
      last_plain_progress_ = now;
      notice(line);
    }
    return;
  }
  const std::string text = "\r" + std::string(line.substr(0, progress_columns())) + "\x1b[K";
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  progress_shown_ = true;
}

void CliContext::clear_progress() {
  if (progress_shown_) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    progress_shown_ = false;
  }
}

Status CliContext::write_document(const std::string& file, std::string_view text) {
  note_fallback();
  if (file != "-") {
    CUDABK_TRY(check_writable(file));
    return write_file_atomic(file, text);
  }
  clear_progress();
  return write_all(stdout, text);
}

void CliContext::note(ErrorKind kind) { note_exit(exit_code(kind)); }

void CliContext::note_exit(int status) { noted_.push_back(status); }

void CliContext::note_error(const Error& error) {
  clear_progress();
  const std::string text = "error: " + one_line(error.message) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  note(error.kind);
}

int CliContext::exit_status() const {
  for (const int code : kPrecedence) {
    for (const int noted : noted_) {
      if (noted == code) {
        return code;
      }
    }
  }
  return 0;
}

}  // namespace cudabk::cli
