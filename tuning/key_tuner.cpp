#include "tuning/key_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace cudabk {
namespace {

// The halving search leaves out what was this far from the best on a neighbouring shape; the exhaustive one tries all.
constexpr double kFarOffAtOtherSize = 2.0;     // same columns, other m and k
constexpr double kFarOffAtFewerColumns = 4.0;  // same m and k, the next smaller n, and getting worse with n

int64_t value(const TuneShape& shape, std::string_view name) {
  for (const auto& [n, v] : shape) {
    if (n == name) {
      return v;
    }
  }
  return 0;
}

TuneShape with(TuneShape shape, std::string_view name, int64_t v) {
  for (auto& [n, current] : shape) {
    current = n == name ? v : current;
  }
  return shape;
}

std::vector<int64_t> coordinates(const TuneShape& shape, const std::vector<std::string>& dims) {
  std::vector<int64_t> at;
  for (const std::string& d : dims) {
    at.push_back(value(shape, d));
  }
  return at;
}

// Time of a candidate over the best of the point; nullopt where it was not measured.
std::optional<double> ratio_to_best(const PointResult& point, const Candidate& candidate) {
  double best = point.default_ns, mine = candidate == point.default_choice ? point.default_ns : 0;
  for (const auto& e : point.entries) {
    best = std::min(best, e.ns);
    mine = e.candidate == candidate ? e.ns : mine;
  }
  return mine > 0 && best > 0 ? std::optional<double>(mine / best) : std::nullopt;
}

}  // namespace

Result<bool> KeyTuner::run() {
  if (!options_.shapes.empty()) {  // columns first: kernels differ most by them
    for (const auto& [name, v] : options_.shapes[0]) {
      dims_.push_back(name);
    }
    std::stable_partition(dims_.begin(), dims_.end(), [](const std::string& d) { return d == "n"; });
  }
  bool complete = true;
  for (size_t i = 0; i < options_.shapes.size() && complete; ++i) {
    step_(options_.shapes[i], options_.shapes.size() - i);
    CUDABK_ASSIGN(complete, measure(options_.shapes[i]));
  }
  fit();
  if (complete) {
    CUDABK_ASSIGN(complete, refine());
  }
  build_table();
  return complete;
}

Result<bool> KeyTuner::measure(const TuneShape& shape) {
  const auto worth = [&](const Candidate& c) { return worth_trying(shape, c); };
  return keep(measurer_.search(report_.key, shape, worth), shape);
}

// True when the point was kept or the shape is skipped for good; false when it is time to stop.
Result<bool> KeyTuner::keep(Result<PointResult> point, const TuneShape& shape) {
  if (point.ok()) {
    report_.points.push_back(std::move(point).value());
    return true;
  }
  const ErrorKind kind = point.error().kind;
  if (kind == ErrorKind::kInterrupted || kind == ErrorKind::kInconclusive) {
    return false;
  }
  if (kind == ErrorKind::kInternal || kind == ErrorKind::kWrongOutput) {
    return std::move(point).error();
  }
  skipped_.push_back(fmt::format("{} {} {}: {}", options_.op, report_.key, shape_label(shape), point.error().message));
  return true;
}

bool KeyTuner::worth_trying(const TuneShape& shape, const Candidate& candidate) const {
  if (options_.search.strategy == Strategy::kExhaustive) {
    return true;
  }
  const int64_t n = value(shape, "n");
  std::optional<double> other_size;
  std::map<int64_t, double> by_columns;  // same m and k, fewer columns
  for (const PointResult& point : report_.points) {
    const std::optional<double> ratio = ratio_to_best(point, candidate);
    if (!ratio) {
      continue;
    }
    const int64_t columns = value(point.shape, "n");
    if (columns == n) {
      other_size = std::min(other_size.value_or(*ratio), *ratio);
    } else if (columns < n && with(point.shape, "n", n) == shape) {
      by_columns[columns] = *ratio;
    }
  }
  if (other_size && *other_size > kFarOffAtOtherSize) {
    return false;
  }
  if (by_columns.size() >= 2) {
    const double last = by_columns.rbegin()->second, before = std::next(by_columns.rbegin())->second;
    return last <= kFarOffAtFewerColumns || last < before;
  }
  return true;
}

int KeyTuner::index_of(const Candidate& candidate) {
  const auto it = std::find(candidates_.begin() + 1, candidates_.end(), candidate);
  if (it != candidates_.end()) {
    return static_cast<int>(it - candidates_.begin());
  }
  candidates_.push_back(candidate);
  return static_cast<int>(candidates_.size()) - 1;
}

int KeyTuner::chosen(const TuneShape& shape) const { return fitted_choice(report_.fit, coordinates(shape, dims_)); }

void KeyTuner::fit() {
  for (const PointResult& p : report_.points) {
    index_of(p.default_choice);
    for (const auto& e : p.entries) {
      index_of(e.candidate);
    }
  }
  std::vector<FitPoint> points;
  for (const PointResult& p : report_.points) {
    FitPoint point;
    point.at = coordinates(p.shape, dims_);
    point.ns.assign(candidates_.size(), std::nan(""));
    point.confirmed.assign(candidates_.size(), false);
    point.ns[0] = p.default_ns;
    point.ns[static_cast<size_t>(index_of(p.default_choice))] = p.default_ns;
    for (const auto& e : p.entries) {
      if (measurer_.is_bad(report_.key, e.candidate)) {
        continue;
      }
      const auto i = static_cast<size_t>(index_of(e.candidate));
      point.ns[i] = e.ns;
      point.confirmed[i] = e.faster;
    }
    points.push_back(std::move(point));
  }
  FitOptions fit_options;
  fit_options.dims = dims_;
  fit_options.regret = options_.regret;
  fit_options.tie = options_.margin;
  report_.fit = fit_table(points, fit_options);
  report_.worst_ratio = 1;
  for (const FitPoint& p : points) {
    const auto c = static_cast<size_t>(fitted_choice(report_.fit, p.at));
    report_.worst_ratio = std::max(report_.worst_ratio, p.ns[c] / p.ns[0]);
  }
}

// Column counts half way between two measured ones whose choice differs; and the shapes never seen, where a new rule
// applies to them.
std::vector<KeyTuner::Check> KeyTuner::checks(bool with_unseen) const {
  std::vector<Check> result;
  std::set<TuneShape> known;
  std::map<TuneShape, std::set<int64_t>> columns;  // by shape with n = 0
  for (const PointResult& p : report_.points) {
    known.insert(p.shape);
    columns[with(p.shape, "n", 0)].insert(value(p.shape, "n"));
  }
  for (const auto& [shape, counts] : columns) {
    for (auto low = counts.begin(); low != counts.end() && std::next(low) != counts.end(); ++low) {
      const int64_t high = *std::next(low);
      const int a = chosen(with(shape, "n", *low)), b = chosen(with(shape, "n", high));
      const TuneShape middle = with(shape, "n", *low + (high - *low) / 2);
      if (a == b || high - *low <= std::max<int64_t>(1, *low / 8) || known.contains(middle)) {
        continue;
      }
      Check check{middle, {}, false};
      for (const int c : {a, b}) {
        if (c != 0) {
          check.candidates.push_back(candidates_[static_cast<size_t>(c)]);
        }
      }
      result.push_back(std::move(check));
    }
  }
  for (const TuneShape& shape : options_.unseen) {
    const int c = chosen(shape);
    if (with_unseen && c != 0 && !known.contains(shape)) {
      result.push_back({shape, {candidates_[static_cast<size_t>(c)]}, true});
    }
  }
  return result;
}

Result<bool> KeyTuner::refine() {
  for (int round = 0; round < options_.refine_rounds; ++round) {
    const std::vector<Check> list = checks(round == 0);
    if (list.empty()) {
      break;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      step_(list[i].shape, list.size() - i);
      const size_t before = report_.points.size();
      CUDABK_ASSIGN(const bool go_on,
                    keep(measurer_.pair(report_.key, list[i].shape, list[i].candidates), list[i].shape));
      report_.checked += list[i].unseen && report_.points.size() > before ? 1 : 0;
      if (!go_on) {
        fit();
        return false;
      }
    }
    fit();
  }
  return true;
}

// "-12.3 % against the default (-20.1..-4.0 over 6 shapes), 20 rounds, 2026-01-31"
std::string KeyTuner::evidence(const FittedRule& rule) const {
  std::vector<double> gains;
  int64_t samples = 0;
  for (const PointResult& p : report_.points) {
    if (chosen(p.shape) != rule.candidate) {
      continue;
    }
    const std::vector<int64_t> at = coordinates(p.shape, dims_);
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
                     options_.date.empty() ? "" : ", ", options_.date);
}

void KeyTuner::build_table() {
  std::vector<std::pair<std::string, Interval>> fixed;  // dims that were not varied but that rules may look at
  if (!report_.points.empty()) {
    for (const auto& [name, v] : report_.points[0].problem.dims) {
      const bool varied = std::find(dims_.begin(), dims_.end(), name) != dims_.end();
      const bool looked_at =
          name == "batch" || std::any_of(base_.rules.begin(), base_.rules.end(), [&, &n = name](const Rule& r) {
            return std::any_of(r.when.begin(), r.when.end(), [&](const auto& c) { return c.first == n; });
          });
      if (!varied && looked_at) {
        fixed.emplace_back(name, Interval{v, v});
      }
    }
  }
  for (const FittedRule& fitted : report_.fit.rules) {
    const Candidate& candidate = candidates_[static_cast<size_t>(fitted.candidate)];
    Rule rule;
    rule.use = candidate.family;
    rule.config = candidate.config;
    rule.when = fixed;
    for (size_t d = 0; d < dims_.size(); ++d) {
      rule.when.emplace_back(dims_[d], fitted.box[d]);
    }
    std::sort(rule.when.begin(), rule.when.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    rule.evidence = evidence(fitted);
    rule.code = factory_.rule_code(report_.key, rule);
    report_.table.rules.push_back(std::move(rule));
  }
  std::stable_sort(report_.table.rules.begin(), report_.table.rules.end(), [](const Rule& a, const Rule& b) {
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
  report_.new_rules = report_.table.rules.size();
  report_.table.rules.insert(report_.table.rules.end(), base_.rules.begin(), base_.rules.end());
}

}  // namespace cudabk
