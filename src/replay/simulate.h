// A search strategy tried on a journal: the device is replaced by what was recorded, with its noise.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/tune_journal.h"

namespace cudabk {

struct SimulateOptions {
  SearchOptions search;
  int64_t confirm_rounds = 20;
  double margin = 0.01, regret = 0.03;
  int rounds = 5;  // independent runs
  uint64_t seed = 1;
  const std::atomic<bool>* interrupted = nullptr;
};

// Of one strategy over all rounds. Regret: time of what the fitted table picks over the best that the journal knows of
// that shape, minus 1; over all searched shapes of all keys and rounds.
struct Simulation {
  SimulateOptions options;
  double samples = 0;  // taken per round: screening and pairing
  double timings = 0;  // per round: candidate and shape
  double rules = 0;    // per round
  size_t shapes = 0;
  double regret_median = 0, regret_p95 = 0, regret_max = 0;
  double default_regret_median = 0, default_regret_max = 0;
};

// Candidates that the journal has no time of count as unable to run. Errors: those of tune().
Result<Simulation> simulate_search(const TuneJournal& journal, const SimulateOptions& options);

std::string simulation_text(const std::vector<Simulation>& simulations);
std::string simulation_json(const std::vector<Simulation>& simulations);  // cudabk-replay/1, part "simulation"

}  // namespace cudabk
