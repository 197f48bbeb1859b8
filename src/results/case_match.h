// Which rows of two sets of results are the same case, and whether they may be compared.
#pragma once

#include <string>
#include <vector>

#include "results/compare.h"
#include "results/load.h"

namespace cudabk {

using CaseRows = std::vector<const CaseResult*>;  // of one key: repetitions, and those of other files; not owned

struct MatchedCase {
  CaseRows baseline, candidate;  // one may be empty
  std::string device;            // name, of the candidate where it has the case
  Reason obstacle = Reason::kNone;
  std::string message;  // of the obstacle
};

// Cases in the order of the baseline, then those that only the candidate has. Rows belong together when they have one
// key and device (name, architecture, number of SMs). A case that the other side has on another device, or with another
// launch, cache mode or timer, is joined with it and gets that obstacle, unless `force`. The sets must outlive the
// value.
std::vector<MatchedCase> match_cases(const ResultSet& baseline, const ResultSet& candidate, bool force);

// Whether both sides ran the same kernels with the same machine code, and launch shapes. False when a
// code's hash is not known.
bool same_code(const MatchedCase& match);

// The comparison's row without figures. Its `reason` is set where there is nothing to compare: the verdict is then
// final.
CaseComparison describe_match(const MatchedCase& match, const CompareOptions& options);

}  // namespace cudabk
