#include "replay/refit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "replay/text.h"
#include "tuning/table_fit.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

std::vector<TuneShape> shapes_of(const std::map<TuneShape, RecordedShape>& recorded) {
  std::vector<TuneShape> shapes;
  for (const auto& [shape, timings] : recorded) {
    shapes.push_back(shape);
  }
  return shapes;
}

// The hash that the journal has for the rule's variant at the upper corner of its intervals, which is where rules are
// checked for being stale; "" when that shape was not measured.
std::string recorded_code(const std::map<TuneShape, RecordedShape>& recorded, const Rule& rule) {
  for (const auto& [at, shape] : recorded) {
    const bool corner = std::all_of(at.begin(), at.end(), [&](const auto& extent) {
      return std::any_of(rule.when.begin(), rule.when.end(), [&](const auto& condition) {
        return condition.first == extent.first && condition.second.high == extent.second;
      });
    });
    const auto timing = shape.timings.find(Candidate{rule.use, rule.config});
    if (corner && timing != shape.timings.end()) {
      return timing->second.code;
    }
  }
  return "";
}

struct Totals {
  size_t shapes = 0, rules = 0;
  double median = 0, p95 = 0, max = 0, worst = 1, default_median = 0, default_max = 0;  // largest over keys
};

Totals totals_of(const Refit& fit) {
  Totals t;
  for (const KeyReport& key : fit.keys) {
    t.shapes += key.points.size();
    t.rules += key.new_rules;
    t.median = std::max(t.median, key.fit.regret_median);
    t.p95 = std::max(t.p95, key.fit.regret_p95);
    t.max = std::max(t.max, key.fit.regret_max);
    t.worst = std::max(t.worst, key.worst_ratio);
    t.default_median = std::max(t.default_median, key.fit.default_regret_median);
    t.default_max = std::max(t.default_max, key.fit.default_regret_max);
  }
  return t;
}

Json fit_json(const KeyReport& key) {
  Json rules = Json::array();
  for (size_t i = 0; i < key.new_rules; ++i) {
    rules.push_back({{"rule", rule_text(key.table.rules[i])}, {"evidence", key.table.rules[i].evidence}});
  }
  return {{"key", key.key},
          {"shapes", key.points.size()},
          {"regret_median", key.fit.regret_median},
          {"regret_p95", key.fit.regret_p95},
          {"regret_max", key.fit.regret_max},
          {"default_regret_median", key.fit.default_regret_median},
          {"default_regret_max", key.fit.default_regret_max},
          {"worst_against_default", key.worst_ratio},
          {"rules", rules}};
}

}  // namespace

Refit refit_profile(const TuneJournal& journal, const RefitOptions& options) {
  Refit fit;
  fit.options = options;
  fit.profile = journal.base;
  for (const auto& [key, recorded] : journal.keys) {
    KeyReport report;
    report.key = key;
    report.points = recorded_points(recorded, options.margin);
    report.shapes_planned = report.points.size();
    const auto bad = journal.quarantined.find(key);
    const auto is_bad = [&](const Candidate& c) {
      return bad != journal.quarantined.end() &&
             std::find(bad->second.begin(), bad->second.end(), c) != bad->second.end();
    };
    TableFitter fitter = TableFitter::for_shapes(shapes_of(recorded));
    fitter.fit(report.points, options.regret, options.margin, is_bad);
    const Table& base = journal.base.table({journal.op, key, {}});
    report.table = fitter.table(report.points, base, options.date,
                                [&, &shapes = recorded](const Rule& rule) { return recorded_code(shapes, rule); });
    report.new_rules = report.table.rules.size() - base.rules.size();
    report.fit = fitter.result();
    report.worst_ratio = fitter.worst_ratio();
    if (!report.table.rules.empty() && report.table.rules.back().when.empty()) {
      fit.profile.tables[journal.op][key] = report.table;
    }
    fit.keys.push_back(std::move(report));
  }
  const Totals t = totals_of(fit);
  fit.profile.evidence.erase("origin");
  fit.profile.evidence["regret_median_percent"] = fmt::format("{:.2f}", 100 * t.median);
  fit.profile.evidence["regret_p95_percent"] = fmt::format("{:.2f}", 100 * t.p95);
  fit.profile.evidence["measurements"] = fmt::format(
      "fitted from a journal of {} timings, regret bound {:g} %, margin {:g} %; outside the intervals of the "
      "rules the defaults stay",
      journal.entries, 100 * options.regret, 100 * options.margin);
  return fit;
}

std::string refit_text(const std::vector<Refit>& fits) {
  std::vector<std::vector<std::string>> rows;
  for (const Refit& fit : fits) {
    const Totals t = totals_of(fit);
    rows.push_back({percent(fit.options.regret), fmt::format("{}", t.rules), percent(t.median), percent(t.p95),
                    percent(t.max), signed_percent(t.worst - 1), percent(t.default_median), percent(t.default_max)});
  }
  std::string text = "regret against the best of each shape, the worst type\n\n";
  text += table_text(
      {{"bound"}, {"rules"}, {"median"}, {"p95"}, {"max"}, {"worst/default"}, {"default median"}, {"default max"}},
      rows);
  if (fits.empty()) {
    return text;
  }
  text += fmt::format("\nrules with the bound {}:\n", percent(fits.back().options.regret));
  for (const KeyReport& key : fits.back().keys) {
    text += fmt::format("{}: {} shapes, regret median {}, max {}\n", key.key, key.points.size(),
                        percent(key.fit.regret_median), percent(key.fit.regret_max));
    for (size_t i = 0; i < key.new_rules; ++i) {
      text += fmt::format("  {}\n", rule_text(key.table.rules[i]));
    }
  }
  return text;
}

std::string refit_json(const std::vector<Refit>& fits) {
  Json list = Json::array();
  for (const Refit& fit : fits) {
    Json keys = Json::array();
    for (const KeyReport& key : fit.keys) {
      keys.push_back(fit_json(key));
    }
    list.push_back({{"regret_bound", fit.options.regret}, {"margin", fit.options.margin}, {"keys", keys}});
  }
  return Json({{"schema", "cudabk-replay/1"}, {"refit", list}}).dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace cudabk
