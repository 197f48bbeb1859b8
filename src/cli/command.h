// What every subcommand shares: global options, the device, output channels, exit status. One file per subcommand
// parses, calls the library and prints; there is no logic here.
#pragma once

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/device.h"
#include "dispatch/profile.h"

namespace cudabk::cli {

class CliContext {
 public:
  // Global options (main.cpp registers them on every subcommand).
  std::string device_name = "auto";    // --device, CUDABK_DEVICE
  std::string profile_file;            // --profile, CUDABK_PROFILE
  std::string profile_dir;             // where `tune` keeps this user's profiles: XDG_DATA_HOME/cudabk/profiles
  std::vector<std::string> arguments;  // argv[1..]: what reproduces this run
  DeviceOptions device_options;        // cache folder from XDG_CACHE_HOME, --shuffle-threads
  bool quiet = false;
  bool verbose = false;
  bool progress = true;         // off with --no-progress
  bool color = false;           // --color auto|always|never, NO_COLOR
  bool machine_stdout = false;  // some output was asked for on "-": human text then goes to stderr
  // Set by a command that leaves something behind even when its command line is wrong.
  std::function<void(const Error&)> on_usage_error;

  CliContext();  // reads the environment; flags override
  ~CliContext();

  // Opened at first use. Falling back to the emulated device prints its one-line notice once, with
  // the first output: a bad command line gets its error line alone.
  Result<Device*> device();
  Result<const Profile*> profile();  // for device()

  // Human text, no newline added. Standard output that takes no more is an error (exit status 2), said once.
  void print(std::string_view text);
  void notice(std::string_view line);  // one line on stderr, unless --quiet
  // On a terminal rewrites one line of stderr, "" removes it. Elsewhere (a log, a pipe) it is a line of its own, and at
  // most one in kPlainProgressSeconds: what ends sooner says nothing.
  void show_progress(std::string_view line);
  // Writes a document to FILE (atomically) or, for "-", to stdout.
  Status write_document(const std::string& file, std::string_view text);

  // Set by the handler of SIGINT, SIGTERM and SIGHUP; long work polls it and returns what it has.
  static const std::atomic<bool>& interrupted();

  // Exit status: the first that applies in the order 130, 70, 2, 6, 5, 1, 4, 3, 0 wins.
  void note(ErrorKind kind);
  void note_exit(int status);           // a status that is no error's, such as 1 of `gate`
  void note_error(const Error& error);  // prints "error: ..." (one line) and notes its kind
  int exit_status() const;

 private:
  static constexpr std::chrono::seconds kPlainProgressSeconds{10};

  void clear_progress();
  void note_fallback();

  bool terminal_ = false;  // stderr is one
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_plain_progress_ = std::chrono::steady_clock::now();
  bool print_failed_ = false;
  std::string fallback_note_;  // not yet printed
  std::unique_ptr<Device> device_;
  std::unique_ptr<Profile> profile_;
  std::vector<int> noted_;
};

// --help with the groups of options in one order for all commands.
class GroupedFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

using Handler = std::function<Status(CliContext&)>;

// --device, --profile, --quiet ... on `command` and on every subcommand of it that has a handler.
void add_global_options(CLI::App& command, CliContext& context);

// "--json FILE", "--csv FILE" ...: an output option; "-" as its value marks stdout as machine output.
CLI::Option* add_output_option(CLI::App& command, CliContext& context, const std::string& name, std::string& file,
                               const std::string& help);

// Runs `handler` when `command` was chosen; its error becomes the message and the exit status.
void set_handler(CLI::App& command, CliContext& context, Handler handler);

// One per file cmd_NAME.cpp; CMake lists the files that exist, main.cpp calls them in this order.
void add_info_command(CLI::App& app, CliContext& context);
void add_list_command(CLI::App& app, CliContext& context);
void add_bench_command(CLI::App& app, CliContext& context);
void add_test_command(CLI::App& app, CliContext& context);
void add_tune_command(CLI::App& app, CliContext& context);
void add_explain_command(CLI::App& app, CliContext& context);
void add_profile_command(CLI::App& app, CliContext& context);
void add_report_command(CLI::App& app, CliContext& context);
void add_replay_command(CLI::App& app, CliContext& context);
void add_compare_command(CLI::App& app, CliContext& context);
void add_gate_command(CLI::App& app, CliContext& context);
void add_kernels_command(CLI::App& app, CliContext& context);

}  // namespace cudabk::cli
