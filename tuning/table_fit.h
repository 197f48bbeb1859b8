// From the measured points of one table key to its rules, with the evidence of each. Pure: no device, no clock.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tuning/tuner.h"

namespace cudabk {

// Value of a named extent of a shape; 0 when it has none of that name.
int64_t shape_extent(const TuneShape& shape, std::string_view name);

class TableFitter {
 public:
  // `dims`: what the rules may look at, in the order in which to prefer splits.
  explicit TableFitter(std::vector<std::string> dims = {}) : dims_(std::move(dims)) {}
  // The dims of these shapes, columns first: kernels differ most by them.
  static TableFitter for_shapes(const std::vector<TuneShape>& shapes);

  // Candidates for which `is_bad` holds are never chosen. `regret` and `margin` as in TuneOptions.
  void fit(const std::vector<PointResult>& points, double regret, double margin,
           const std::function<bool(const Candidate&)>& is_bad);
  const Fit& result() const { return fit_; }
  double worst_ratio() const { return worst_ratio_; }  // largest tuned / default time over the points

  int chosen(const TuneShape& shape) const;  // index of the candidate; 0: the default
  const Candidate& candidate(int index) const { return candidates_[static_cast<size_t>(index)]; }

  // New rules with evidence and code, in ascending order of columns, then those of `base`. `points` are those of fit().
  Table table(const std::vector<PointResult>& points, const Table& base, const std::string& date,
              const std::function<std::string(const Rule&)>& code_of) const;

 private:
  int index_of(const Candidate& candidate);
  std::vector<int64_t> coordinates(const TuneShape& shape) const;
  std::string evidence(const FittedRule& rule, const std::vector<PointResult>& points, const std::string& date) const;

  std::vector<std::string> dims_;
  std::vector<Candidate> candidates_ = {{}};  // by index in the fit; [0] is the default
  Fit fit_;
  double worst_ratio_ = 1;
};

}  // namespace cudabk
