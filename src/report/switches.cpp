#include "report/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "backend/layouts.h"
#include "core/units.h"
#include "dispatch/problem.h"
#include "ops/op_def.h"

namespace cudabk {
namespace {

constexpr int64_t kLargestMapColumns = 4096;

std::string choice_text(const std::string& family, const Config& config) {
  return config.empty() ? family : family + " " + config_text(config);
}
std::string choice_text(const CaseResult& c) { return choice_text(c.family, c.config); }

// What the profile picks for a case with other columns; empty when that cannot be told.
class TableChoice {
 public:
  explicit TableChoice(const ReportInput& input) : input_(input) {}

  std::optional<Choice> at(const CaseResult& c, int64_t n) const {
    if (!input_.profile || !input_.device) {
      return std::nullopt;
    }
    const Result<const OpDef*> op = find_op(c.target);
    if (!op.ok() || (*op)->families().empty()) {
      return std::nullopt;
    }
    CaseParams params = c.params;
    params.set("n", fmt::format("{}", n));
    Graph graph;
    const Result<Tensor*> t = (*op)->build(graph, params);
    if (!t.ok()) {
      return std::nullopt;
    }
    choose_layouts(graph, *input_.device, PlanOptions{.profile = &*input_.profile});
    const Problem problem = (*op)->problem(**t);
    Result<Choice> choice = choose(problem, *input_.device, input_.profile->table(problem), (*op)->families());
    return choice.ok() ? std::optional(std::move(choice).value()) : std::nullopt;
  }
  std::string text(const CaseResult& c, int64_t n) const {
    const std::optional<Choice> choice = at(c, n);
    return choice ? choice_text(choice->family, choice->config) : "";
  }

 private:
  const ReportInput& input_;
};

struct Measured {
  int64_t n;
  const CaseResult* result;
};

// Cases that differ in n alone, ascending; only those where the table chose.
std::vector<std::vector<Measured>> columns_of(const RunResult& run) {
  std::map<std::string, std::vector<Measured>> groups;
  for (const CaseResult& c : run.cases) {
    const Result<int64_t> n = c.params.get_int("n");
    if (c.variant != "auto" || c.family.empty() || !n.ok() || c.repetition != 0) {
      continue;
    }
    CaseParams rest = c.params;
    rest.set("n", "");
    groups[fmt::format("{} {} {} {} {}", c.target, rest.text(), c.launch, c.fusion, c.cache)].push_back({*n, &c});
  }
  std::vector<std::vector<Measured>> result;
  for (auto& [name, list] : groups) {
    std::stable_sort(list.begin(), list.end(), [](const Measured& a, const Measured& b) { return a.n < b.n; });
    result.push_back(std::move(list));
  }
  return result;
}

// Every switch of the table in (low.n, high.n]; empty when it does not agree with what ran at both ends.
std::vector<SwitchPoint> exact_switches(const TableChoice& table, const Measured& low, const Measured& high) {
  std::vector<SwitchPoint> points;
  const std::string last = choice_text(*high.result);
  if (table.text(*low.result, low.n) != choice_text(*low.result) || table.text(*low.result, high.n) != last) {
    return points;
  }
  int64_t at = low.n;
  std::string current = choice_text(*low.result);
  while (current != last && at < high.n) {
    int64_t same = at, other = high.n;
    while (other - same > 1) {
      const int64_t middle = same + (other - same) / 2;
      (table.text(*low.result, middle) == current ? same : other) = middle;
    }
    SwitchPoint point{low.result->key, high.result->key, other, other, true, current, table.text(*low.result, other)};
    at = other;
    current = point.to;
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

std::vector<SwitchPoint> switch_points(const ReportInput& input) {
  const TableChoice table(input);
  std::vector<SwitchPoint> points;
  for (const std::vector<Measured>& list : columns_of(input.runs.back().run)) {
    for (size_t i = 0; i + 1 < list.size(); ++i) {
      const Measured &low = list[i], &high = list[i + 1];
      if (low.n == high.n || choice_text(*low.result) == choice_text(*high.result)) {
        continue;
      }
      std::vector<SwitchPoint> exact = exact_switches(table, low, high);
      if (exact.empty()) {
        exact.push_back({low.result->key, high.result->key, low.n, high.n, false, choice_text(*low.result),
                         choice_text(*high.result)});
      }
      points.insert(points.end(), exact.begin(), exact.end());
    }
  }
  return points;
}

std::vector<MapCell> choice_map(const ReportInput& input) {
  const TableChoice table(input);
  std::vector<MapCell> cells;
  std::set<std::string> seen;
  for (const std::vector<Measured>& list : columns_of(input.runs.back().run)) {
    const CaseResult& c = *list.front().result;
    const std::string type = c.params.get("type"), m = c.params.get("m"), k = c.params.get("k");
    const bool plain = !type.empty() && !m.empty() && !k.empty() && c.params.values.size() == 4;
    const bool known = std::all_of(list.begin(), list.end(), [&](const Measured& x) {
      return table.text(*x.result, x.n) == choice_text(*x.result);
    });
    if (!plain || !known || !seen.insert(type + " " + m + " " + k).second) {
      continue;
    }
    const int64_t largest = std::min(std::max<int64_t>(list.back().n, 1), kLargestMapColumns);
    for (int64_t n = 1; n <= largest; n *= 2) {
      const std::optional<Choice> choice = table.at(c, n);
      if (choice) {
        cells.push_back({type, m, fmt::format("{}", n), k, choice->family, config_text(choice->config)});
      }
    }
  }
  return cells;
}

}  // namespace cudabk
