// Output files that bench and test share.
#pragma once

#include <string>

#include "bench/result.h"
#include "cli/command.h"

namespace cudabk::cli {

struct OutputFiles {
  std::string json, jsonl, csv, md, junit;
};

void add_output_options(CLI::App& command, CliContext& context, OutputFiles& files);

// kInvalid when two documents were asked for on stdout or a file cannot be written; before the work starts.
Status check_outputs(const OutputFiles& files);

// Writes every document asked for; the first error is returned after all were tried.
Status write_outputs(CliContext& context, const OutputFiles& files, const RunResult& run);

}  // namespace cudabk::cli
