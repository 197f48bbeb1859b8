// Two sets of results, case by case: how much faster or slower, how sure, and what to call it. No file is read and
// nothing is measured here. docs/gating.md explains the rules.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/load.h"
#include "results/thresholds.h"

namespace cudabk {

enum class Verdict {
  kImproved,
  kSame,
  kRegressed,
  kInconclusive,   // too noisy, too few samples, or time and cycles disagree
  kMissing,        // there is nothing to compare this case with
  kUnchangedCode,  // the same kernels with the same machine code and launch shapes ran on both sides
};
std::string_view verdict_name(Verdict verdict);  // "improved", ..., "unchanged code"

// Why a case is inconclusive or missing.
enum class Reason {
  kNone,
  kFewSamples,
  kNoise,        // the interval is too wide for the threshold
  kClock,        // time and cycles give different verdicts; with kSame: only the time changed, by as much as the clock
  kRepetitions,  // the repetitions of the two sides overlap too much
  kThrottled,    // a row that should change the verdict was marked as throttled
  kNoBaseline,   // only the candidate has this case
  kNoCandidate,  // only the baseline has it
  kOtherDevice,  // the other side measured it on another device
  kOtherMode,    // ... with another launch or cache mode
  kOtherTimer,   // ... with another timer
  kWrongOutput,  // the candidate's row differs from the reference
  kNotMeasured,  // a row without a time on one side: failed, out of memory, ...
  kNeitherSide,  // ... on both sides
};
std::string_view reason_name(Reason reason);  // "few-samples", ...: stable, for machines; "" for kNone

struct CompareOptions {
  Thresholds thresholds;
  double confidence = 0.99;      // of the intervals; 1 - confidence bounds the chance of a false alarm per comparison
  size_t min_samples = 20;       // a side
  bool force = false;            // compare in spite of other devices, launch or cache modes and timers
  bool judge_unchanged = false;  // give identical code a verdict like any other (A against A)
};

struct CaseComparison {
  std::string key;      // the candidate's, or the baseline's where there is none
  std::string target;   // "mul_mat"
  std::string device;   // name
  std::string command;  // measures the candidate's row again
  Verdict verdict = Verdict::kMissing;
  Reason reason = Reason::kNone;
  std::string message;  // one line for people; empty where the figures say it all

  size_t baseline_samples = 0, candidate_samples = 0;
  std::optional<double> baseline_ns, candidate_ns;  // medians per op
  std::optional<double> change;                     // 0.05: the candidate takes 5 % longer
  std::optional<double> change_low, change_high;    // its confidence interval
  std::optional<double> cycles_change;              // the same in SM cycles, where the clock is known
  std::optional<double> p, p_adjusted;              // raw, and after Holm's correction over the cases judged
  double threshold = 0;
  std::vector<double> confirmations;  // the change in each re-measurement
};

// What is known of one side.
struct SideInfo {
  std::string path;                   // as given
  std::vector<std::string> files;     // names of the results
  std::vector<std::string> digests;   // of the same files
  std::vector<std::string> devices;   // names, each once
  std::vector<std::string> versions;  // of cudabk, each once
  std::string started;                // of the last run
  bool complete = true;               // false: a run was interrupted or out of budget
};

struct Comparison {
  SideInfo baseline, candidate;
  std::vector<CaseComparison> cases;  // order of the baseline, then what only the candidate has
  // Median change of all cases where there are 20 or more and it is at most a third of the threshold; else 0. Runs
  // differ a little by the state of the machine, which all cases share: sizes are judged relative to it. More is news.
  double common_change = 0;
  std::vector<std::string> notes;  // for people: other driver, incomplete run, all cases moved together

  size_t count(Verdict verdict) const;
  size_t compared() const;  // cases with a change: everything that was measured on both sides
};

SideInfo describe_side(const std::string& path, const ResultSet& set);

// Rows with one key are one case: repetitions and several files of a folder are pooled. Pure; uses all cores.
Comparison compare_results(const ResultSet& baseline, const ResultSet& candidate, const CompareOptions& options);

}  // namespace cudabk
