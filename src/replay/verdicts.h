// Verdicts on recorded samples with other thresholds.
#pragma once

#include <string>
#include <vector>

#include "replay/statistics.h"
#include "results/compare.h"

namespace cudabk {

struct ReplayedVerdicts {
  double threshold = 0;
  Comparison comparison;
};

// `set` as if sampling had ended after options.first samples; unchanged when that is 0.
ResultSet shortened(const ResultSet& set, const ReplayStatistics& options);

// One comparison per threshold, which holds for every case. `thresholds` must not be empty.
std::vector<ReplayedVerdicts> replay_verdicts(const ResultSet& baseline, const ResultSet& candidate,
                                              const CompareOptions& options, const std::vector<double>& thresholds);

// Counts per threshold, then the verdict of every case whose verdict depends on it or is no "same".
std::string verdicts_text(const std::vector<ReplayedVerdicts>& verdicts);
std::string verdicts_json(const std::vector<ReplayedVerdicts>& verdicts);  // cudabk-replay/1, part "verdicts"

}  // namespace cudabk
