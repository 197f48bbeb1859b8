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

int64_t value(const TuneShape& shape, std::string_view name) { return shape_extent(shape, name); }

TuneShape with(TuneShape shape, std::string_view name, int64_t v) {
  for (auto& [n, current] : shape) {
    current = n == name ? v : current;
  }
  return shape;
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
  fitter_ = TableFitter::for_shapes(options_.shapes);
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

int KeyTuner::chosen(const TuneShape& shape) const { return fitter_.chosen(shape); }

void KeyTuner::fit() {
  fitter_.fit(report_.points, options_.regret, options_.margin,
              [this](const Candidate& c) { return measurer_.is_bad(report_.key, c); });
  report_.fit = fitter_.result();
  report_.worst_ratio = fitter_.worst_ratio();
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
          check.candidates.push_back(fitter_.candidate(c));
        }
      }
      result.push_back(std::move(check));
    }
  }
  for (const TuneShape& shape : options_.unseen) {
    const int c = chosen(shape);
    if (with_unseen && c != 0 && !known.contains(shape)) {
      result.push_back({shape, {fitter_.candidate(c)}, true});
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

void KeyTuner::build_table() {
  report_.table = fitter_.table(report_.points, base_, options_.date,
                                [this](const Rule& rule) { return factory_.rule_code(report_.key, rule); });
  report_.new_rules = report_.table.rules.size() - base_.rules.size();
}

}  // namespace cudabk
