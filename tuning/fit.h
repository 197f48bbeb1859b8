// From timings to the smallest table of interval rules. Pure: no device, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/problem.h"

namespace cudabk {

// One measured shape. Candidate 0 is what runs without any new rule (the default) and always has a time.
struct FitPoint {
  std::vector<int64_t> at;      // one value per FitOptions::dims
  std::vector<double> ns;       // per candidate; NaN where it was not measured or must not be used
  std::vector<bool> confirmed;  // beat the default here by more than the margin and outside the noise
};

struct FitOptions {
  std::vector<std::string> dims;  // in the order in which to prefer splits
  double regret = 0.03;           // a rule may cost this much against the best of any of its points
  double tie = 0.01;              // ... and this much against the default
};

struct FittedRule {
  std::vector<Interval> box;  // per dim; inside the range of the points
  int candidate = 0;          // never the default
};

struct Fit {
  std::vector<FittedRule> rules;                             // disjoint; what none covers stays with the default
  double regret_median = 0, regret_p95 = 0, regret_max = 0;  // over the points, as fractions
  double default_regret_median = 0, default_regret_max = 0;  // of the default on the same points
};

// The fewest rules such that at every point the chosen candidate is within `regret` of the best and within `tie` of the
// default; among those the least total time. Only confirmed candidates count as better than the default, so noise never
// moves it. Between two points a boundary falls right above the lower one (a kernel for 32 columns also serves 17..31).
Fit fit_table(const std::vector<FitPoint>& points, const FitOptions& options);

// Candidate chosen for values of the dims; 0 outside every box.
int fitted_choice(const Fit& fit, const std::vector<int64_t>& at);

}  // namespace cudabk
