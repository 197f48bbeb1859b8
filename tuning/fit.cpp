#include "tuning/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace cudabk {
namespace {

using Box = std::vector<std::pair<int, int>>;  // per dim: first and last index of its distinct values

struct Cost {
  int rules = 0;
  double loss = 0;     // sum of log(time / best)
  size_t covered = 0;  // points taken from the default; on a tie it keeps its place
  bool operator<(const Cost& o) const {
    if (rules != o.rules) {
      return rules < o.rules;
    }
    return std::abs(loss - o.loss) > 1e-9 ? loss < o.loss : covered < o.covered;
  }
};

// The best partition of a box: a leaf with one candidate, or a cut into two boxes.
struct Part {
  Cost cost;
  int candidate = 0;
  int dim = -1;  // cut dimension, -1 for a leaf
  int cut = 0;   // last index of the lower part
};

class Fitter {
 public:
  Fitter(const std::vector<FitPoint>& points, const FitOptions& options) : points_(points), options_(options) {
    const size_t dims = options.dims.size();
    values_.resize(dims);
    for (size_t d = 0; d < dims; ++d) {
      std::set<int64_t> distinct;
      for (const FitPoint& p : points) {
        distinct.insert(p.at[d]);
      }
      values_[d].assign(distinct.begin(), distinct.end());
    }
    for (const FitPoint& p : points) {
      best_.push_back(best_time(p));
      candidates_ = std::max(candidates_, p.ns.size());
    }
  }

  Fit run() {
    Fit fit;
    if (points_.empty()) {
      return fit;
    }
    Box whole;
    for (const auto& v : values_) {
      whole.emplace_back(0, static_cast<int>(v.size()) - 1);
    }
    collect(whole, fit.rules);
    std::vector<double> regrets, default_regrets;
    for (size_t i = 0; i < points_.size(); ++i) {
      const int chosen = fitted_choice(fit, points_[i].at);
      regrets.push_back(points_[i].ns[static_cast<size_t>(chosen)] / best_[i] - 1);
      default_regrets.push_back(points_[i].ns[0] / best_[i] - 1);
    }
    std::sort(regrets.begin(), regrets.end());
    std::sort(default_regrets.begin(), default_regrets.end());
    const auto rank = [](const std::vector<double>& v, double q) {
      return v[static_cast<size_t>(std::ceil(q * static_cast<double>(v.size()))) - 1];
    };
    fit.regret_median = rank(regrets, 0.5);
    fit.regret_p95 = rank(regrets, 0.95);
    fit.regret_max = regrets.back();
    fit.default_regret_median = rank(default_regrets, 0.5);
    fit.default_regret_max = default_regrets.back();
    return fit;
  }

 private:
  static double best_time(const FitPoint& p) {
    double best = p.ns[0];
    for (size_t c = 1; c < p.ns.size(); ++c) {
      if (p.confirmed[c] && p.ns[c] < best) {  // false for NaN
        best = p.ns[c];
      }
    }
    return best;
  }

  bool allowed(size_t point, size_t candidate) const {
    const FitPoint& p = points_[point];
    if (candidate >= p.ns.size()) {
      return false;
    }
    const double t = p.ns[candidate];
    const bool near_best = t <= best_[point] * (1 + options_.regret);  // false for NaN
    return near_best && (candidate == 0 || t <= p.ns[0] * (1 + options_.tie));
  }

  std::vector<size_t> inside(const Box& box) const {
    std::vector<size_t> result;
    for (size_t i = 0; i < points_.size(); ++i) {
      bool in = true;
      for (size_t d = 0; d < box.size() && in; ++d) {
        const int64_t low = values_[d][static_cast<size_t>(box[d].first)];
        const int64_t high = values_[d][static_cast<size_t>(box[d].second)];
        in = points_[i].at[d] >= low && points_[i].at[d] <= high;
      }
      if (in) {
        result.push_back(i);
      }
    }
    return result;
  }

  // Cost of one candidate for every point of the box, or rules < 0 when it is not allowed at one of them.
  Cost leaf(const std::vector<size_t>& points, size_t candidate) const {
    Cost cost{candidate == 0 ? 0 : 1, 0, candidate == 0 ? 0 : points.size()};
    for (const size_t i : points) {
      if (!allowed(i, candidate)) {
        return {-1, 0, 0};
      }
      cost.loss += std::max(0.0, std::log(points_[i].ns[candidate] / best_[i]));
    }
    return cost;
  }

  const Part& solve(const Box& box) {
    const auto found = memo_.find(box);
    if (found != memo_.end()) {
      return found->second;
    }
    const std::vector<size_t> points = inside(box);
    Part best;
    bool any = false;
    for (size_t c = 0; c < std::max<size_t>(candidates_, 1); ++c) {
      const Cost cost = leaf(points, c);
      if (cost.rules >= 0 && (!any || cost < best.cost)) {
        best = {cost, static_cast<int>(c), -1, 0};
        any = true;
      }
    }
    // Even where one candidate serves the whole box, a cut may leave more of it to the default.
    for (size_t d = 0; d < box.size() && !(any && best.candidate == 0 && best.dim < 0); ++d) {
      for (int cut = box[d].first; cut < box[d].second; ++cut) {
        any = try_cut(box, static_cast<int>(d), cut, any, best);
      }
    }
    return memo_.emplace(box, best).first->second;
  }

  // Takes the cut when it is better than `best` or there is none yet; returns whether there is one then.
  bool try_cut(const Box& box, int dim, int cut, bool any, Part& best) {
    Box low = box, high = box;
    low[static_cast<size_t>(dim)].second = cut;
    high[static_cast<size_t>(dim)].first = cut + 1;
    const Cost a = solve(low).cost;
    const Cost b = solve(high).cost;
    const Cost cost{a.rules + b.rules, a.loss + b.loss, a.covered + b.covered};
    if (!any || cost < best.cost) {
      best = {cost, 0, dim, cut};
    }
    return true;
  }

  void collect(const Box& box, std::vector<FittedRule>& rules) {
    const Part plan = solve(box);
    if (plan.dim >= 0) {
      Box part = box;
      part[static_cast<size_t>(plan.dim)].second = plan.cut;
      collect(part, rules);
      part = box;
      part[static_cast<size_t>(plan.dim)].first = plan.cut + 1;
      collect(part, rules);
      return;
    }
    if (plan.candidate == 0) {
      return;
    }
    FittedRule rule;
    rule.candidate = plan.candidate;
    for (size_t d = 0; d < box.size(); ++d) {
      const auto [first, last] = box[d];
      const std::vector<int64_t>& v = values_[d];
      rule.box.push_back({first == 0 ? v[0] : v[static_cast<size_t>(first) - 1] + 1, v[static_cast<size_t>(last)]});
    }
    rules.push_back(std::move(rule));
  }

  const std::vector<FitPoint>& points_;
  const FitOptions& options_;
  std::vector<std::vector<int64_t>> values_;
  std::vector<double> best_;
  size_t candidates_ = 0;
  std::map<Box, Part> memo_;
};

}  // namespace

Fit fit_table(const std::vector<FitPoint>& points, const FitOptions& options) { return Fitter(points, options).run(); }

int fitted_choice(const Fit& fit, const std::vector<int64_t>& at) {
  for (const FittedRule& rule : fit.rules) {
    bool in = true;
    for (size_t d = 0; d < at.size() && in; ++d) {
      in = rule.box[d].contains(at[d]);
    }
    if (in) {
      return rule.candidate;
    }
  }
  return 0;
}

}  // namespace cudabk
