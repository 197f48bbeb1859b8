// A verdict for people, pull requests and CI systems. Pure: complete texts come back.
#pragma once

#include <cstddef>
#include <string>

#include "results/gate.h"

namespace cudabk {

struct TableOptions {
  bool color = false;      // ANSI colours
  size_t quiet_rows = 10;  // so many rows of cases that need no attention (same, unchanged, improved); SIZE_MAX: all
};

// The worst first; what all keys have in common is said once above. Ends with the notes and the summary line.
std::string verdict_table(const GateVerdict& verdict, const TableOptions& options);

// For a pull request's comment or a job summary: the summary, a table of what needs attention, the rest folded away.
std::string verdict_markdown(const GateVerdict& verdict);

// Workflow commands for GitHub Actions: an error or a warning per case that needs attention (at most ten of each,
// which is what GitHub shows), then a notice with the summary.
std::string verdict_annotations(const GateVerdict& verdict);

// One test case per case: regressed and wrong output are failures, inconclusive ones errors, missing ones errors or,
// where they do not fail the gate, skipped; then one per finding that concerns no single case.
std::string verdict_junit(const GateVerdict& verdict);

}  // namespace cudabk
