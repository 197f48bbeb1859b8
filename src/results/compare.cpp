#include "results/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/parallel.h"
#include "measure/statistics.h"
#include "results/case_match.h"
#include "results/case_samples.h"

namespace cudabk {
namespace {

// Both quantities of one case; their p-values become the corrected ones.
struct Judged {
  std::optional<Shift> time, cycles;
  bool throttled = false, slower_runs_agree = true, faster_runs_agree = true;
};

CaseSamples pooled(const CaseRows& rows) {
  CaseSamples samples;
  for (const CaseResult* row : rows) {
    samples.add(*row);
  }
  return samples;
}

// Fills in sizes, medians and the shift; the verdict comes when all p-values are known.
Judged measure_shift(const MatchedCase& match, const CompareOptions& options, CaseComparison& row) {
  const CaseSamples all_baseline = pooled(match.baseline), all_candidate = pooled(match.candidate);
  row.baseline_samples = all_baseline.ns.size();
  row.candidate_samples = all_candidate.ns.size();
  const Matched matched = match_clocks(all_baseline, all_candidate, options.min_samples);
  row.baseline_ns = median(matched.baseline.ns);
  row.candidate_ns = median(matched.candidate.ns);
  Judged judged;
  judged.throttled = all_baseline.throttled || all_candidate.throttled;
  judged.slower_runs_agree = runs_agree(matched.baseline, matched.candidate, true);
  judged.faster_runs_agree = runs_agree(matched.baseline, matched.candidate, false);
  judged.time = estimate_shift(matched.baseline.ns, matched.candidate.ns, options.confidence);
  const auto cycles_a = cycles_of(matched.baseline), cycles_b = cycles_of(matched.candidate);
  if (cycles_a && cycles_b) {
    judged.cycles = estimate_shift(*cycles_a, *cycles_b, options.confidence);
  }
  if (judged.time) {
    row.change = judged.time->ratio - 1;
    row.change_low = judged.time->low - 1;
    row.change_high = judged.time->high - 1;
    row.p = judged.time->p;
  }
  if (judged.cycles) {
    row.cycles_change = judged.cycles->ratio - 1;
  }
  return judged;
}

void set_inconclusive(CaseComparison& row, Reason reason, std::string message) {
  row.verdict = Verdict::kInconclusive;
  row.reason = reason;
  row.message = std::move(message);
}

// Doubts that keep a change from counting.
void doubt_change(const Judged& judged, bool slower, CaseComparison& row) {
  if (judged.throttled) {
    set_inconclusive(row, Reason::kThrottled, "measured while the GPU was throttled");
  } else if (!(slower ? judged.slower_runs_agree : judged.faster_runs_agree)) {
    set_inconclusive(row, Reason::kRepetitions, "the repetitions of the two sides overlap");
  }
}

std::string noise_text(const CaseComparison& row) {
  if (std::abs(*row.change) >= row.threshold && *row.change_low * *row.change_high > 0) {
    return fmt::format("not certain enough (p {:.2g} after correction for the number of cases)", *row.p_adjusted);
  }
  return fmt::format("too noisy for a limit of {:.3g} %", row.threshold * 100);
}

// `shift` relative to what all cases did.
Shift relative_to(double common_change, Shift shift) {
  shift.ratio /= 1 + common_change;
  shift.low /= 1 + common_change;
  shift.high /= 1 + common_change;
  return shift;
}

void give_verdict(const Judged& judged, const CompareOptions& options, double common_change, CaseComparison& row) {
  if (!judged.time || std::min(row.baseline_samples, row.candidate_samples) < options.min_samples) {
    set_inconclusive(row, Reason::kFewSamples,
                     fmt::format("{} and {} samples, {} a side are needed", row.baseline_samples, row.candidate_samples,
                                 options.min_samples));
    return;
  }
  row.p_adjusted = judged.time->p;
  const Finding time = judge_shift(relative_to(common_change, *judged.time), row.threshold, options.confidence);
  const Finding cycles =
      judged.cycles ? judge_shift(relative_to(common_change, *judged.cycles), row.threshold, options.confidence) : time;
  const bool time_changed = time == Finding::kSlower || time == Finding::kFaster;
  const bool cycles_changed = cycles == Finding::kSlower || cycles == Finding::kFaster;
  if (time_changed && cycles == Finding::kSame) {
    row.verdict = Verdict::kSame;
    row.reason = Reason::kClock;
    row.message = fmt::format("{:+.1f} % in cycles: the clock changed, not the code", *row.cycles_change * 100);
    return;
  }
  if (time != cycles && (time_changed || cycles_changed)) {
    set_inconclusive(row, Reason::kClock,
                     fmt::format("{:+.1f} % in time, {:+.1f} % in cycles: the clock changed", *row.change * 100,
                                 *row.cycles_change * 100));
    return;
  }
  if (time == Finding::kUnclear) {
    set_inconclusive(row, Reason::kNoise, noise_text(row));
    return;
  }
  row.verdict =
      time == Finding::kSame ? Verdict::kSame : (time == Finding::kSlower ? Verdict::kRegressed : Verdict::kImproved);
  if (time_changed) {
    doubt_change(judged, time == Finding::kSlower, row);
  }
}

// Identical code cannot be at fault; a change is still said.
void give_unchanged(const Judged& judged, const CompareOptions& options, CaseComparison& row) {
  row.verdict = Verdict::kUnchangedCode;
  if (!judged.time) {
    row.message = fmt::format("{} and {} samples tell of no change", row.baseline_samples, row.candidate_samples);
    return;
  }
  if (judged.time->p < 1 - options.confidence && std::abs(*row.change) >= row.threshold) {
    row.message =
        fmt::format("{:+.1f} % with identical kernels: the machine, the driver or host code", *row.change * 100);
  }
}

// Holm's correction of one quantity over the cases that can fail.
void correct(std::vector<Judged>& judged, const std::vector<char>& unchanged, std::optional<Shift> Judged::*quantity) {
  std::vector<Shift*> tested;
  std::vector<double> p;
  for (size_t i = 0; i < judged.size(); ++i) {
    if ((judged[i].*quantity) && unchanged[i] == 0) {
      tested.push_back(&*(judged[i].*quantity));
      p.push_back(tested.back()->p);
    }
  }
  const std::vector<double> adjusted = holm_adjusted(p);
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p = adjusted[i];
  }
}

double common_change(const std::vector<Judged>& judged, double bound) {
  constexpr size_t kEnoughCases = 20;
  std::vector<double> changes;
  for (const Judged& one : judged) {
    if (one.time) {
      changes.push_back(one.time->ratio - 1);
    }
  }
  const double common = changes.size() < kEnoughCases ? 0 : *median(changes);
  return std::abs(common) <= bound ? common : 0;
}

// Each case alone, then Holm's correction over those that can fail.
void judge_cases(const std::vector<MatchedCase>& matches, const CompareOptions& options, Comparison& comparison) {
  std::vector<CaseComparison>& rows = comparison.cases;
  std::vector<Judged> judged(rows.size());
  std::vector<char> unchanged(rows.size(), 0);
  constexpr int64_t kCasesPerThread = 200;  // a case costs some 50 us
  const Status done =
      in_parallel(static_cast<int64_t>(rows.size()), kCasesPerThread, 0, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
          rows[i] = describe_match(matches[i], options);
          if (rows[i].reason == Reason::kNone) {
            judged[i] = measure_shift(matches[i], options, rows[i]);
            unchanged[i] = !options.judge_unchanged && same_code(matches[i]) ? 1 : 0;
          }
        }
        return success();
      });
  (void)done;  // the work always succeeds
  correct(judged, unchanged, &Judged::time);
  correct(judged, unchanged, &Judged::cycles);
  comparison.common_change = common_change(judged, options.thresholds.fallback() / 3);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].reason != Reason::kNone) {
      continue;
    }
    unchanged[i] != 0 ? give_unchanged(judged[i], options, rows[i])
                      : give_verdict(judged[i], options, comparison.common_change, rows[i]);
  }
}

template <class Get>
std::set<std::string> distinct(const ResultSet& set, Get get) {
  std::set<std::string> values;
  for (const ResultFile& file : set.files) {
    values.insert(get(file.run.environment));
  }
  return values;
}

void note_difference(const ResultSet& baseline, const ResultSet& candidate, const char* what,
                     std::string (*get)(const RunEnvironment&), std::vector<std::string>& notes) {
  const std::set<std::string> a = distinct(baseline, get), b = distinct(candidate, get);
  if (a != b) {
    notes.push_back(fmt::format("different {}: {} and {}", what, fmt::join(a, ", "), fmt::join(b, ", ")));
  }
}

// A change of most cases at once is rarely the work of one commit.
void note_common_change(Comparison& comparison) {
  constexpr size_t kEnoughCases = 10;
  constexpr double kWorthSaying = 0.01;
  std::vector<double> changes;
  for (const CaseComparison& row : comparison.cases) {
    if (row.change) {
      changes.push_back(*row.change);
    }
  }
  if (changes.size() < kEnoughCases) {
    return;
  }
  if (const double common = *median(changes); std::abs(common) >= kWorthSaying) {
    comparison.notes.push_back(
        fmt::format("all cases together moved by {:+.1f} % (median): was the machine the same?", common * 100));
  }
}

void note_completeness(const SideInfo& side, const char* name, std::vector<std::string>& notes) {
  if (!side.complete) {
    notes.push_back(fmt::format("the {} is incomplete: a run was interrupted or out of budget", name));
  }
}

// Comparing a file with itself finds nothing, whatever the rules.
void note_same_result(Comparison& comparison) {
  const SideInfo &a = comparison.baseline, &b = comparison.candidate;
  for (size_t i = 0; i < a.digests.size(); ++i) {
    const auto it = std::find(b.digests.begin(), b.digests.end(), a.digests[i]);
    if (it != b.digests.end() && !it->empty()) {
      comparison.notes.push_back(
          fmt::format("both sides hold the same result: {} and {}", a.files[i], b.files[it - b.digests.begin()]));
      return;
    }
  }
}

}  // namespace

size_t Comparison::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(cases.begin(), cases.end(), [&](const CaseComparison& row) { return row.verdict == verdict; }));
}

size_t Comparison::compared() const {
  return static_cast<size_t>(std::count_if(cases.begin(), cases.end(), [](const CaseComparison& row) {
    return row.verdict != Verdict::kMissing && row.change.has_value();
  }));
}

SideInfo describe_side(const std::string& path, const ResultSet& set) {
  SideInfo side;
  side.path = path;
  for (const ResultFile& file : set.files) {
    side.files.push_back(file.path.string());
    side.digests.push_back(file.digest);
    side.started = std::max(side.started, file.run.environment.started);
    side.complete = side.complete && file.run.complete;
  }
  const auto list = [&](std::string (*get)(const RunEnvironment&)) {
    const std::set<std::string> values = distinct(set, get);
    return std::vector<std::string>(values.begin(), values.end());
  };
  side.devices = list([](const RunEnvironment& e) { return e.device.name; });
  side.versions = list([](const RunEnvironment& e) { return e.tool_version; });
  return side;
}

Comparison compare_results(const ResultSet& baseline, const ResultSet& candidate, const CompareOptions& options) {
  Comparison comparison;
  comparison.baseline = describe_side("", baseline);
  comparison.candidate = describe_side("", candidate);
  note_same_result(comparison);
  note_completeness(comparison.baseline, "baseline", comparison.notes);
  note_completeness(comparison.candidate, "candidate", comparison.notes);
  note_difference(
      baseline, candidate, "drivers", [](const RunEnvironment& e) { return e.device.driver_text; }, comparison.notes);
  note_difference(
      baseline, candidate, "toolkits", [](const RunEnvironment& e) { return e.toolkit; }, comparison.notes);
  const std::vector<MatchedCase> matches = match_cases(baseline, candidate, options.force);
  comparison.cases.resize(matches.size());
  judge_cases(matches, options, comparison);
  note_common_change(comparison);
  return comparison;
}

}  // namespace cudabk
