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
  if (row.verdict == Verdict::kSame && row.reason == Reason::kClock) {
    return true;  // slower by as much as the clock: by chance, it might be the code
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

bool is_calm(const CaseComparison& row) { return row.verdict == Verdict::kSame || row.verdict == Verdict::kImproved; }

int count_verdicts(const Suspect& suspect, bool regressed) {
  return static_cast<int>(std::count_if(suspect.seen.begin(), suspect.seen.end(), [&](const auto& row) {
    return regressed ? row.verdict == Verdict::kRegressed : is_calm(row);
  }));
}

// The rounds that are left cannot turn the majority.
bool is_settled(const Suspect& suspect, int rounds_left) {
  const int lead = count_verdicts(suspect, true) - count_verdicts(suspect, false);
  return lead > rounds_left || -lead >= rounds_left;
}

// The last row with (without) a regression that is conclusive.
const CaseComparison* last_of(const Suspect& suspect, bool regressed) {
  const auto it = std::find_if(suspect.seen.rbegin(), suspect.seen.rend(), [&](const auto& row) {
    return regressed ? row.verdict == Verdict::kRegressed : is_calm(row);
  });
  return it == suspect.seen.rend() ? nullptr : &*it;
}

CaseComparison final_verdict(const Suspect& suspect) {
  const CaseComparison& first = suspect.seen.front();
  const int regressed = count_verdicts(suspect, true), calm = count_verdicts(suspect, false);
  CaseComparison row = first;
  if (regressed >= 2 && regressed > calm) {
    row = first.verdict == Verdict::kRegressed ? first : *last_of(suspect, true);
    row.message = "confirmed";
  } else if (calm > 0 && calm >= regressed) {
    row = *last_of(suspect, false);
    row.message = first.verdict == Verdict::kRegressed
                      ? fmt::format("not confirmed: {:+.1f} % at first", first.change.value_or(0) * 100)
                      : "after measuring again";
  } else if (regressed > 0) {
    row.verdict = Verdict::kInconclusive;
    row.reason = Reason::kNoise;
    row.message = fmt::format("{:+.1f} % in one measurement, too noisy in the others",
                              last_of(suspect, true)->change.value_or(0) * 100);
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
size_t add_round(const Comparison& fresh, int rounds_left, std::vector<Suspect>& suspects) {
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
      suspect.settled = is_settled(suspect, rounds_left);
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
    if (add_round(compare_results(fresh->first, fresh->second, options), rounds - round - 1, suspects) == 0) {
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
