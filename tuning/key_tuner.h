// Tunes one table: measures the shapes, fits, narrows the switch points, checks shapes it has not seen, fits again.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "tuning/point.h"
#include "tuning/table_fit.h"

namespace cudabk {

class KeyTuner {
 public:
  // `step` is told before each shape how many shapes are still expected.
  KeyTuner(PointMeasurer& measurer, ShapeBenchFactory& factory, const Table& base, const TuneOptions& options,
           std::string key, std::function<void(const TuneShape&, size_t left)> step)
      : measurer_(measurer), factory_(factory), base_(base), options_(options), step_(std::move(step)) {
    report_.key = std::move(key);
    report_.shapes_planned = options.shapes.size();
  }

  // Never fails for lack of time or a Ctrl-C: it then works with what it has and returns false.
  Result<bool> run();
  KeyReport& report() { return report_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  Result<bool> measure(const TuneShape& shape);  // false: time to stop
  Result<bool> keep(Result<PointResult> point, const TuneShape& shape);
  bool worth_trying(const TuneShape& shape, const Candidate& candidate) const;
  void fit();
  Result<bool> refine();                     // checks and narrows until nothing is left to measure
  int chosen(const TuneShape& shape) const;  // by the fit; 0: the default

  struct Check {
    TuneShape shape;
    std::vector<Candidate> candidates;
    bool unseen = false;
  };
  std::vector<Check> checks(bool with_unseen) const;
  void build_table();

  PointMeasurer& measurer_;
  ShapeBenchFactory& factory_;
  const Table& base_;
  const TuneOptions& options_;
  std::function<void(const TuneShape&, size_t)> step_;
  TableFitter fitter_;
  std::vector<std::string> skipped_;
  KeyReport report_;
};

}  // namespace cudabk
