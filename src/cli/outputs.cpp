#include "cli/outputs.h"

#include <fmt/format.h>

#include <utility>

#include "core/file.h"

namespace cudabk::cli {

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

Status check_outputs(const OutputFiles& files) {
  int on_stdout = 0;
  for (const std::string* file : {&files.json, &files.jsonl, &files.csv, &files.md, &files.junit}) {
    if (*file == "-") {
      ++on_stdout;
    } else if (!file->empty()) {
      CUDABK_TRY(check_writable(*file));
    }
  }
  return on_stdout > 1 ? Status(invalid("only one output can go to stdout ('-')")) : success();
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
