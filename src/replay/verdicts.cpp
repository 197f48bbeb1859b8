#include "replay/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "replay/text.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

constexpr Verdict kVerdicts[] = {Verdict::kRegressed,     Verdict::kImproved,     Verdict::kSame,
                                 Verdict::kUnchangedCode, Verdict::kInconclusive, Verdict::kMissing};

Json number(const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); }

}  // namespace

ResultSet shortened(const ResultSet& set, const ReplayStatistics& options) {
  ResultSet result = set;
  if (options.first > 0) {
    for (ResultFile& file : result.files) {
      file.run = replay_statistics(file.run, options);
    }
  }
  return result;
}

std::vector<ReplayedVerdicts> replay_verdicts(const ResultSet& baseline, const ResultSet& candidate,
                                              const CompareOptions& options, const std::vector<double>& thresholds) {
  std::vector<ReplayedVerdicts> verdicts;
  for (const double threshold : thresholds) {
    CompareOptions own = options;
    own.thresholds = Thresholds(threshold);
    verdicts.push_back({threshold, compare_results(baseline, candidate, own)});
  }
  return verdicts;
}

std::string verdicts_text(const std::vector<ReplayedVerdicts>& verdicts) {
  std::vector<Column> columns = {{"threshold"}};
  for (const Verdict v : kVerdicts) {
    columns.push_back({std::string(verdict_name(v))});
  }
  std::vector<std::vector<std::string>> rows;
  for (const ReplayedVerdicts& v : verdicts) {
    rows.push_back({percent(v.threshold)});
    for (const Verdict verdict : kVerdicts) {
      rows.back().push_back(fmt::format("{}", v.comparison.count(verdict)));
    }
  }
  std::string text = table_text(columns, rows);
  columns = {{"case", false}, {"change"}, {"interval"}};
  for (const ReplayedVerdicts& v : verdicts) {
    columns.push_back({percent(v.threshold), false});
  }
  rows.clear();
  const std::vector<CaseComparison>& cases = verdicts.front().comparison.cases;
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool plain = std::all_of(verdicts.begin(), verdicts.end(), [&](const ReplayedVerdicts& v) {
      const Verdict own = v.comparison.cases[i].verdict;
      return own == Verdict::kSame || own == Verdict::kUnchangedCode;
    });
    if (plain) {
      continue;
    }
    const CaseComparison& c = cases[i];
    rows.push_back(
        {c.key, c.change ? signed_percent(*c.change) : "-",
         c.change_low && c.change_high ? signed_percent(*c.change_low) + " … " + signed_percent(*c.change_high) : "-"});
    for (const ReplayedVerdicts& v : verdicts) {
      rows.back().emplace_back(verdict_name(v.comparison.cases[i].verdict));
    }
  }
  return rows.empty() ? text : text + "\n" + table_text(columns, rows);
}

std::string verdicts_json(const std::vector<ReplayedVerdicts>& verdicts) {
  Json list = Json::array();
  for (const ReplayedVerdicts& v : verdicts) {
    Json cases = Json::array();
    for (const CaseComparison& c : v.comparison.cases) {
      cases.push_back({{"key", c.key},
                       {"verdict", verdict_name(c.verdict)},
                       {"reason", reason_name(c.reason)},
                       {"change", number(c.change)},
                       {"change_low", number(c.change_low)},
                       {"change_high", number(c.change_high)}});
    }
    list.push_back({{"threshold", v.threshold}, {"cases", cases}});
  }
  return Json({{"schema", "cudabk-replay/1"}, {"verdicts", list}}).dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace cudabk
