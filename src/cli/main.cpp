// cudabk: parses the command line and runs one subcommand. Exit statuses: docs, table "Exit status".
#include <cstdio>
#include <exception>
#include <sstream>

#include "cli/command.h"
#include "cli/parse_error.h"
#include "core/log.h"

namespace cudabk::cli {
namespace {

void print_log_line(CliContext& context, LogLevel level, std::string_view line) {
  if (level == LogLevel::kWarning) {
    context.notice("warning: " + std::string(line));
  } else if (context.verbose) {
    context.notice(line);
  }
}

int run(int argc, char** argv) {
  CliContext context;
  context.arguments.assign(argv + 1, argv + argc);
  set_log_sink([&context](LogLevel level, std::string_view line) { print_log_line(context, level, line); });

  CLI::App app{"CUDA kernels for LLM inference: benchmark, verify, autotune.", "cudabk"};
  app.set_version_flag("--version", "cudabk " CUDABK_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<GroupedFormatter>());  // before the commands, which inherit it
  app.get_formatter()->column_width(34);
  app.footer(
      "Examples:\n  cudabk bench mulmat --type q4_K\n  cudabk test mulmat\n  cudabk info\n"
      "  cudabk COMMAND --help");
#include "commands.inc"
  add_global_options(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      context.print(text.str());
      return context.exit_status();
    }
    const Error described = invalid(describe_parse_error(app, error));
    context.note_error(described);
    if (context.on_usage_error) {
      context.on_usage_error(described);
    }
  } catch (const std::bad_alloc&) {
    context.note_error(unfit("out of host memory"));
  } catch (const std::exception& error) {
    context.note_error(internal_error(error.what()));
  }
  set_log_sink({});
  return context.exit_status();
}

}  // namespace
}  // namespace cudabk::cli

int main(int argc, char** argv) { return cudabk::cli::run(argc, argv); }
