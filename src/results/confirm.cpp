#include "results/confirm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace cudabk {
namespace {

bool worth_measuring(const CaseComparison& row) {
  if (row.verdict == Verdict::kRegressed) {
    return true;
  }
  return row.verdict == Verdict::kInconclusive &&
         (row.reason == Reason::kNoise || row.reason == Reason::kClock || row.reason == Reason::kRepetitions ||
          row.reason == Reason::kThrottled);
}

// What all comparisons of one case said, the first one in front.
struct Suspect {
  size_t row = 0;
  std::vector<CaseComparison> seen;
  bool settled = false;
};

bool conclusive(const CaseComparison& row) {
  return row.verdict == Verdict::kRegressed || row.verdict == Verdict::kSame || row.verdict == Verdict::kImproved;
}

// No further round can change the verdict: something conclusive is no regression.
bool is_settled(const Suspect& suspect) {
  return std::any_of(suspect.seen.begin() + 1, suspect.seen.end(),
                     [](const auto& row) { return conclusive(row) && row.verdict != Verdict::kRegressed; });
}

CaseComparison final_verdict(const Suspect& suspect) {
  const CaseComparison* calm = nullptr;       // the last that is conclusive and no regression
  const CaseComparison* regressed = nullptr;  // the last regression
  size_t regressions = 0;
  for (const CaseComparison& row : suspect.seen) {
    if (row.verdict == Verdict::kRegressed) {
      regressed = &row;
      ++regressions;
    } else if (conclusive(row)) {
      calm = &row;
    }
  }
  const bool first_regressed = suspect.seen.front().verdict == Verdict::kRegressed;
  if (calm != nullptr) {
    CaseComparison row = *calm;
    row.message = first_regressed
                      ? fmt::format("not confirmed: {:+.1f} % at first", suspect.seen.front().change.value_or(0) * 100)
                      : "after measuring again";
    return row;
  }
  if (regressions >= 2) {
    CaseComparison row = first_regressed ? suspect.seen.front() : *regressed;
    row.message = "confirmed";
    return row;
  }
  CaseComparison row = suspect.seen.front();
  if (regressed != nullptr) {
    row.verdict = Verdict::kInconclusive;
    row.reason = Reason::kNoise;
    row.message = fmt::format("{:+.1f} % in one measurement, too noisy in the others", *regressed->change * 100);
  }
  return row;
}

std::vector<const CaseComparison*> open_cases(const Comparison& comparison, const std::vector<Suspect>& suspects) {
  std::vector<const CaseComparison*> open;
  for (const Suspect& suspect : suspects) {
    if (!suspect.settled) {
      open.push_back(&comparison.cases[suspect.row]);
    }
  }
  return open;
}

// Adds what one round said; the number of suspects that it has measured.
size_t add_round(const Comparison& fresh, std::vector<Suspect>& suspects) {
  std::map<std::string, const CaseComparison*> by_key;
  for (const CaseComparison& row : fresh.cases) {
    if (row.change) {
      by_key.emplace(row.key, &row);
    }
  }
  size_t measured = 0;
  for (Suspect& suspect : suspects) {
    const auto it = by_key.find(suspect.seen.front().key);
    if (!suspect.settled && it != by_key.end()) {
      suspect.seen.push_back(*it->second);
      suspect.settled = is_settled(suspect);
      ++measured;
    }
  }
  return measured;
}

}  // namespace

Status confirm(Comparison& comparison, const CompareOptions& options, int rounds, const Remeasure& remeasure) {
  std::vector<Suspect> suspects;
  for (size_t i = 0; i < comparison.cases.size(); ++i) {
    if (worth_measuring(comparison.cases[i])) {
      suspects.push_back({i, {comparison.cases[i]}});
    }
  }
  for (int round = 0; round < rounds; ++round) {
    const std::vector<const CaseComparison*> open = open_cases(comparison, suspects);
    if (open.empty()) {
      break;
    }
    const auto fresh = remeasure(open, round);
    if (!fresh.ok()) {
      if (fresh.error().kind == ErrorKind::kInterrupted) {
        return fresh.error();
      }
      comparison.notes.push_back("could not measure again: " + fresh.error().message);
      break;
    }
    if (add_round(compare_results(fresh->first, fresh->second, options), suspects) == 0) {
      comparison.notes.push_back("could not measure again: the run had none of the cases");
      break;
    }
  }
  for (const Suspect& suspect : suspects) {
    if (suspect.seen.size() == 1) {
      continue;  // never measured again
    }
    CaseComparison row = final_verdict(suspect);
    row.confirmations.clear();
    for (size_t i = 1; i < suspect.seen.size(); ++i) {
      row.confirmations.push_back(suspect.seen[i].change.value_or(0));
    }
    comparison.cases[suspect.row] = std::move(row);
  }
  return success();
}

}  // namespace cudabk
