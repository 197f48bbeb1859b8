// What `compare` and `gate` share: rules, outputs, loading.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "results/gate.h"
#include "results/load.h"

namespace cudabk::cli {

struct CompareFlags {
  std::string threshold = "3%", threshold_file, confidence = "0.99";
  bool force = false, judge_unchanged = false, all = false;
  std::string md, junit, json;
};

void add_compare_options(CLI::App& command, CliContext& context, CompareFlags& flags);

// kInvalid with the flag's name.
Result<CompareOptions> to_compare_options(const CompareFlags& flags);

// Notes what a folder held besides results.
void note_skipped(CliContext& context, const ResultSet& set);

// Table on the terminal, and the files asked for.
Status show_verdict(CliContext& context, const CompareFlags& flags, const GateVerdict& verdict);

}  // namespace cudabk::cli
