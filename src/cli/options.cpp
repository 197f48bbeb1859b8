// Options that every subcommand has, and the hook between CLI11 and the handlers.
#include <algorithm>

#include "cli/checks.h"
#include "cli/command.h"

namespace cudabk::cli {
namespace {

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

void add_device_options(CLI::App& command, CliContext& context) {
  if (!has_option(command, "--device")) {
    command.add_option("--device", context.device_name, "auto, cuda:0, host, host:N, host@sm_90a (CUDABK_DEVICE)");
  }
  if (!has_option(command, "--profile")) {
    command.add_option("--profile", context.profile_file, "dispatch tables to use (CUDABK_PROFILE)");
  }
  if (!has_option(command, "--shuffle-threads")) {
    CLI::Option* shuffle = command.add_option_function<uint64_t>(
        "--shuffle-threads",
        [&context](const uint64_t& seed) {
          context.device_options.shuffle_threads_seed = seed;
          context.device_options.thread_order = DeviceOptions::ThreadOrder::kShuffled;
        },
        "emulated device: run threads in a random order of this seed");
    shuffle->check(check_seed);
  }
}

void add_text_options(CLI::App& command, CliContext& context) {
  if (!has_option(command, "--quiet")) {
    command.add_flag("-q,--quiet", context.quiet, "no notices and no progress");
  }
  if (!has_option(command, "--verbose")) {
    command.add_flag("-v,--verbose", context.verbose, "say more");
  }
  if (!has_option(command, "--color")) {
    command
        .add_option_function<std::string>(
            "--color",
            [&context](const std::string& when) {
              if (when != "auto") {
                context.color = when == "always";
              }
            },
            "auto, always, never (NO_COLOR)")
        ->check(one_of({"auto", "always", "never"}));
  }
  if (!has_option(command, "--no-progress")) {
    command.add_flag_callback(
        "--no-progress", [&context] { context.progress = false; }, "no progress lines");
  }
}

// An empty value is what a script passes for a variable that is not set. It must not stand for all, or for none given.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() > 0) {
      option->check(CLI::Validator(
          [help = option->get_description()](const std::string& text) {
            return text.empty() ? "the value is empty; expected: " + help : std::string();
          },
          ""));
    }
  }
}

}  // namespace

std::string GroupedFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) {
    return Formatter::make_help(app, std::move(name), mode);
  }
  static const std::vector<std::string> kOrder = {"Which cases", "Shape",       "Types",  "Layout",    "Operation",
                                                  "Execution",   "Measurement", "Output", "Everywhere"};
  const auto rank = [](const std::string& group) {  // others stay in front, as they were added
    const auto it = std::find(kOrder.begin(), kOrder.end(), group);
    return it == kOrder.end() ? 0 : 1 + (it - kOrder.begin());
  };
  std::vector<std::string> groups = app->get_groups();
  std::stable_sort(groups.begin(), groups.end(),
                   [&rank](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  std::string text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
  for (const std::string& group : groups) {
    const std::vector<const CLI::Option*> options = app->get_options(
        [&group](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
    if (!group.empty() && !options.empty()) {
      text += make_group(group, false, options);
    }
  }
  return text + make_subcommands(app, mode) + "\n" + make_footer(app);
}

void add_global_options(CLI::App& command, CliContext& context) {
  const auto children = command.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* child : children) {
    add_global_options(*child, context);
  }
  add_device_options(command, context);
  add_text_options(command, context);
  refuse_empty_values(command);
  for (const char* name :
       {"--device", "--profile", "--shuffle-threads", "--quiet", "--verbose", "--color", "--no-progress"}) {
    command.get_option(name)->group("Everywhere");
  }
}

CLI::Option* add_output_option(CLI::App& command, CliContext& context, const std::string& name, std::string& file,
                               const std::string& help) {
  return command.add_option_function<std::string>(
      name,
      [&context, &file, name](const std::string& value) {
        if (value.empty()) {
          throw CLI::ValidationError(name, "needs a file, or - for stdout");
        }
        file = value;
        if (value == "-") {
          context.machine_stdout = true;
        }
      },
      help + " (FILE, or - for stdout)");
}

void set_handler(CLI::App& command, CliContext& context, Handler handler) {
  command.callback([&context, handler = std::move(handler)] {
    if (const Status status = handler(context); !status.ok()) {
      context.note_error(status.error());
    }
  });
}

}  // namespace cudabk::cli
