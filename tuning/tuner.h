// The tuner: verify, search, confirm against the default, fit, check on shapes it has not seen, write down.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "dispatch/profile.h"
#include "tuning/fit.h"
#include "tuning/journal.h"
#include "tuning/search.h"
#include "tuning/shape_bench.h"

namespace cudabk {

struct TuneOptions {
  std::string op = "mul_mat";
  std::vector<std::string> keys;  // table keys, in the order to tune them ("q4_K")
  std::vector<TuneShape> shapes;  // per key
  std::vector<TuneShape> unseen;  // checked after the fit
  SearchOptions search;
  int64_t confirm_rounds = 20;  // paired rounds of each finalist and the default
  double margin = 0.01;         // a finalist must beat the default by more than this, outside the interval
  double regret = 0.03;         // a rule may cost this much against the best of any measured shape
  double confidence = 0.95;
  int refine_rounds = 4;   // of narrowing the switch points and of checking
  double budget_s = 0;     // for everything; 0: no limit
  SamplerOptions sampler;  // interrupted, now_s; the rest is set by the tuner
  bool announce = false;   // write a line to the journal before each candidate runs (under a supervisor)
  std::string date;        // for evidence and made_by
  std::function<void(std::string_view)> progress;  // one line that replaces the last; may be empty
  std::function<void(std::string_view)> notice;    // one line that stays; may be empty
};

// One measured shape: candidate times relative to the same run's default.
struct PointResult {
  TuneShape shape;
  Problem problem;
  Candidate default_choice;
  double default_ns = 0;
  struct Entry {
    Candidate candidate;
    double ns = 0;
    double ratio = 1, ratio_low = 1, ratio_high = 1;  // to the default; interval only where paired
    bool paired = false;                              // interleaved with the default
    bool faster = false, slower = false;              // than the default: paired, by more than the margin
  };
  std::vector<Entry> entries;  // fastest first; the default not among them
  int64_t samples = 0;
};

struct KeyReport {
  std::string key;
  size_t shapes_planned = 0;
  std::vector<PointResult> points;  // seen shapes, then those of refining and checking
  Table table;                      // new rules, then those of the table it started from
  size_t new_rules = 0;
  Fit fit;
  size_t checked = 0;      // unseen shapes measured
  double worst_ratio = 1;  // largest tuned / default time over all points after the fit
};

struct TuneReport {
  Profile profile;  // base with the tuned tables and evidence
  std::vector<KeyReport> keys;
  Profile changes;  // the tuned tables and evidence alone, for merging into a file
  std::vector<JournalEntry> quarantined;
  std::vector<std::string> skipped;  // shapes that could not be measured, with the reason
  int64_t timings = 0, reused = 0;   // measured now, taken from the journal
  bool complete = true;              // false: budget or Ctrl-C ended it early
};

// `base` without the rules that an earlier tuning added: those that state evidence or a code hash.
Profile without_tuned_rules(const Profile& base);

// The factory's defaults and `base` must be the same hand-written rules: without_tuned_rules(). Errors: kNothing when
// no shape could be measured at all; kInternal when the device is gone. A wrong or failing candidate is quarantined,
// named in the report, and never timed again.
Result<TuneReport> tune(ShapeBenchFactory& factory, const Profile& base, Journal& journal, const TuneOptions& options);

}  // namespace cudabk
