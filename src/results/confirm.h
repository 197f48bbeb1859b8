// Suspects are measured again before they count.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "results/compare.h"

namespace cudabk {

// Fresh results for some cases: {baseline, candidate}. The baseline may be an old one where only the candidate can be
// measured.
using Remeasure =
    std::function<Result<std::pair<ResultSet, ResultSet>>(const std::vector<const CaseComparison*>& cases, int round)>;

// Measures regressed cases, those whose clock changed, and those that are inconclusive for noise, repetitions or
// throttling again, `rounds` times or until none is left, and gives each a verdict from all rounds:
//   regressed     most conclusive comparisons, the first one included, say so, and there are two at least
//   inconclusive  no comparison was conclusive, or a single one that said regressed
//   else          the last conclusive verdict that is no regression
// The changes of the rounds are kept in `confirmations`. Where measuring is not possible the error becomes a note and
// verdicts stay as they are; kInterrupted is returned. `comparison` must come from compare_results with `options`.
Status confirm(Comparison& comparison, const CompareOptions& options, int rounds, const Remeasure& remeasure);

}  // namespace cudabk
