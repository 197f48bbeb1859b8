// Output files that bench and test share.
#pragma once

#include <string>
#include <vector>

#include "bench/result.h"
#include "cli/command.h"

namespace cudabk::cli {

struct OutputFiles {
  std::string json, jsonl, csv, md, junit;
};

void add_output_options(CLI::App& command, CliContext& context, OutputFiles& files);

// Before the work starts: kInvalid when two documents were asked for on stdout or under one name, when a file cannot be
// written, or when one of `inputs` would be overwritten. Empty names count as none.
Status check_files(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs = {});
Status check_outputs(const OutputFiles& files);

// What is measured so far, to the files that results are read back from; a problem shows when the run ends.
void write_checkpoint(CliContext& context, const OutputFiles& files, const RunResult& partial);

// Writes every document asked for; the first error is returned after all were tried.
Status write_outputs(CliContext& context, const OutputFiles& files, const RunResult& run);

}  // namespace cudabk::cli
