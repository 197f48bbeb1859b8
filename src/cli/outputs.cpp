#include "cli/outputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/file.h"
#include "core/log.h"

namespace cudabk::cli {
namespace {

namespace fs = std::filesystem;

// Devices and pipes may be named twice.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ec;
  if (a.empty() || b.empty() || a == "-" || b == "-" || (fs::exists(a, ec) && !fs::is_regular_file(a, ec))) {
    return false;
  }
  return fs::equivalent(a, b, ec) || fs::absolute(a, ec).lexically_normal() == fs::absolute(b, ec).lexically_normal();
}

}  // namespace

void add_output_options(CLI::App& command, CliContext& context, OutputFiles& files) {
  const std::pair<const char*, std::pair<std::string OutputFiles::*, const char*>> outputs[] = {
      {"--json", {&OutputFiles::json, "result document, schema cudabk-result/1"}},
      {"--jsonl", {&OutputFiles::jsonl, "one JSON line per case after a header line"}},
      {"--csv", {&OutputFiles::csv, "one line per case"}},
      {"--md", {&OutputFiles::md, "Markdown table"}},
      {"--junit", {&OutputFiles::junit, "JUnit XML"}},
  };
  for (const auto& [name, output] : outputs) {
    add_output_option(command, context, name, files.*output.first, output.second)->group("Output");
  }
}

Status check_files(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  int on_stdout = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& output = outputs[i];
    if (output == "-") {
      ++on_stdout;
    } else if (!output.empty()) {
      CUDABK_TRY(check_writable(output));
      for (size_t other = 0; other < i; ++other) {
        if (same_file(output, outputs[other])) {
          return invalid(fmt::format("two outputs go to {}", output));
        }
      }
      for (const std::string& input : inputs) {
        if (same_file(output, input)) {
          return invalid(fmt::format("cannot write {}: it is read as {}", output, input));
        }
      }
    }
  }
  return on_stdout > 1 ? Status(invalid("only one output can go to stdout ('-')")) : success();
}

Status check_outputs(const OutputFiles& files) {
  return check_files({files.json, files.jsonl, files.csv, files.md, files.junit});
}

void write_checkpoint(CliContext& context, const OutputFiles& files, const RunResult& partial) {
  const std::pair<const std::string*, std::string (*)(const RunResult&)> documents[] = {
      {&files.json, result_to_json}, {&files.jsonl, result_to_jsonl}};
  for (const auto& [file, make] : documents) {
    std::error_code ec;
    if (!file->empty() && *file != "-" && (!fs::exists(*file, ec) || fs::is_regular_file(*file, ec))) {
      const Status written = context.write_document(*file, make(partial));
      if (!written.ok()) {
        log_debug("checkpoint: {}", written.error().message);
      }
    }
  }
}

Status write_outputs(CliContext& context, const OutputFiles& files, const RunResult& run) {
  const std::pair<const std::string*, std::string (*)(const RunResult&)> documents[] = {
      {&files.json, result_to_json},   {&files.jsonl, result_to_jsonl}, {&files.csv, result_to_csv},
      {&files.md, result_to_markdown}, {&files.junit, result_to_junit},
  };
  Status first;
  for (const auto& [file, make] : documents) {
    if (file->empty()) {
      continue;
    }
    Status written = context.write_document(*file, make(run));
    if (!written.ok() && first.ok()) {
      first = std::move(written);
    }
  }
  return first;
}

}  // namespace cudabk::cli
