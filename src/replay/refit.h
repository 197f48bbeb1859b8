// A profile fitted anew from a journal, with other bounds.
#pragma once

#include <string>
#include <vector>

#include "replay/tune_journal.h"

namespace cudabk {

struct RefitOptions {
  double regret = 0.03;  // a rule may cost this much against the best of a shape
  double margin = 0.01;  // by which a candidate must beat the default
  std::string date;      // for the evidence
};

struct Refit {
  RefitOptions options;
  std::vector<KeyReport> keys;
  Profile profile;  // base of the journal with the fitted tables
};

Refit refit_profile(const TuneJournal& journal, const RefitOptions& options);

// One line per bound: rules and regret, all keys together; then per key of the last bound, with its rules.
std::string refit_text(const std::vector<Refit>& fits);
std::string refit_json(const std::vector<Refit>& fits);  // schema cudabk-replay/1, part "refit"

}  // namespace cudabk
