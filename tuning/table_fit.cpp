#include "tuning/table_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cudabk {

int64_t shape_extent(const TuneShape& shape, std::string_view name) {
  for (const auto& [n, v] : shape) {
    if (n == name) {
      return v;
    }
  }
  return 0;
}

TableFitter TableFitter::for_shapes(const std::vector<TuneShape>& shapes) {
  std::vector<std::string> dims;
  if (!shapes.empty()) {
    for (const auto& [name, v] : shapes[0]) {
      dims.push_back(name);
    }
    std::stable_partition(dims.begin(), dims.end(), [](const std::string& d) { return d == "n"; });
  }
  return TableFitter(std::move(dims));
}

std::vector<int64_t> TableFitter::coordinates(const TuneShape& shape) const {
  std::vector<int64_t> at;
  for (const std::string& d : dims_) {
    at.push_back(shape_extent(shape, d));
  }
  return at;
}

int TableFitter::index_of(const Candidate& candidate) {
  const auto it = std::find(candidates_.begin() + 1, candidates_.end(), candidate);
  if (it != candidates_.end()) {
    return static_cast<int>(it - candidates_.begin());
  }
  candidates_.push_back(candidate);
  return static_cast<int>(candidates_.size()) - 1;
}

int TableFitter::chosen(const TuneShape& shape) const { return fitted_choice(fit_, coordinates(shape)); }

void TableFitter::fit(const std::vector<PointResult>& points, double regret, double margin,
                      const std::function<bool(const Candidate&)>& is_bad) {
  for (const PointResult& p : points) {
    index_of(p.default_choice);
    for (const auto& e : p.entries) {
      index_of(e.candidate);
    }
  }
  std::vector<FitPoint> fit_points;
  for (const PointResult& p : points) {
    FitPoint point;
    point.at = coordinates(p.shape);
    point.ns.assign(candidates_.size(), std::nan(""));
    point.confirmed.assign(candidates_.size(), false);
    point.ns[0] = p.default_ns;
    point.ns[static_cast<size_t>(index_of(p.default_choice))] = p.default_ns;
    for (const auto& e : p.entries) {
      if (is_bad(e.candidate)) {
        continue;
      }
      const auto i = static_cast<size_t>(index_of(e.candidate));
      point.ns[i] = e.ns;
      point.confirmed[i] = e.faster;
    }
    fit_points.push_back(std::move(point));
  }
  FitOptions fit_options;
  fit_options.dims = dims_;
  fit_options.regret = regret;
  fit_options.tie = margin;
  fit_ = fit_table(fit_points, fit_options);
  worst_ratio_ = 1;
  for (const FitPoint& p : fit_points) {
    const auto c = static_cast<size_t>(fitted_choice(fit_, p.at));
    worst_ratio_ = std::max(worst_ratio_, p.ns[c] / p.ns[0]);
  }
}

// "-12.3 % against the default (-20.1..-4.0 over 6 shapes), 20 rounds, 2026-01-31"
std::string TableFitter::evidence(const FittedRule& rule, const std::vector<PointResult>& points,
                                  const std::string& date) const {
  std::vector<double> gains;
  int64_t samples = 0;
  for (const PointResult& p : points) {
    if (chosen(p.shape) != rule.candidate) {
      continue;
    }
    const std::vector<int64_t> at = coordinates(p.shape);
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      inside = inside && rule.box[d].contains(at[d]);
    }
    if (!inside) {
      continue;
    }
    double ratio = 1;
    for (const auto& e : p.entries) {
      ratio = e.candidate == candidates_[static_cast<size_t>(rule.candidate)] ? e.ratio : ratio;
    }
    gains.push_back(100 * (ratio - 1));
    samples = std::max(samples, p.samples);
  }
  if (gains.empty()) {
    return "";
  }
  std::sort(gains.begin(), gains.end());
  return fmt::format("time {:+.1f} % against the default ({:+.1f}..{:+.1f} over {} shapes), {} paired rounds{}{}",
                     gains[(gains.size() - 1) / 2], gains.front(), gains.back(), gains.size(), samples,
                     date.empty() ? "" : ", ", date);
}

Table TableFitter::table(const std::vector<PointResult>& points, const Table& base, const std::string& date,
                         const std::function<std::string(const Rule&)>& code_of) const {
  Table table;
  std::vector<std::pair<std::string, Interval>> fixed;  // dims that were not varied but that rules may look at
  if (!points.empty()) {
    for (const auto& [name, v] : points[0].problem.dims) {
      const bool varied = std::find(dims_.begin(), dims_.end(), name) != dims_.end();
      const bool looked_at =
          name == "batch" || std::any_of(base.rules.begin(), base.rules.end(), [&, &n = name](const Rule& r) {
            return std::any_of(r.when.begin(), r.when.end(), [&](const auto& c) { return c.first == n; });
          });
      if (!varied && looked_at) {
        fixed.emplace_back(name, Interval{v, v});
      }
    }
  }
  for (const FittedRule& fitted : fit_.rules) {
    const Candidate& candidate = candidates_[static_cast<size_t>(fitted.candidate)];
    Rule rule;
    rule.use = candidate.family;
    rule.config = candidate.config;
    rule.when = fixed;
    for (size_t d = 0; d < dims_.size(); ++d) {
      rule.when.emplace_back(dims_[d], fitted.box[d]);
    }
    std::sort(rule.when.begin(), rule.when.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    rule.evidence = evidence(fitted, points, date);
    rule.code = code_of(rule);
    table.rules.push_back(std::move(rule));
  }
  std::stable_sort(table.rules.begin(), table.rules.end(), [](const Rule& a, const Rule& b) {
    const auto low = [](const Rule& r) {
      for (const auto& [name, interval] : r.when) {
        if (name == "n") {
          return interval.low;
        }
      }
      return int64_t{0};
    };
    return low(a) < low(b);
  });
  table.rules.insert(table.rules.end(), base.rules.begin(), base.rules.end());
  return table;
}

}  // namespace cudabk
