#include "tuning/stale.h"

#include <fmt/format.h>

#include <set>

#include "backend/layouts.h"
#include "backend/plan.h"
#include "tuning/device_bench.h"

namespace cudabk {
namespace {

// The choices that the planner makes for a case; none where it has no plan.
std::vector<ChoiceRecord> choices_of(const BenchCase& c, const DeviceInfo& device, const Profile& profile) {
  Graph graph;
  PlanOptions options;
  options.profile = &profile;
  options.fusion = c.fusion;
  if (!c.variant.family.empty() || !c.op->build(graph, c.params).ok()) {
    return {};
  }
  choose_layouts(graph, device, options);
  Result<Plan> plan = make_plan(graph, device, options);
  return plan.ok() ? std::move(plan->choices) : std::vector<ChoiceRecord>{};
}

}  // namespace

std::vector<std::string> stale_rules(Device& device, const Profile& profile, std::span<const BenchCase> cases) {
  std::vector<std::string> stale;
  std::set<const Rule*> seen;
  for (const BenchCase& c : cases) {
    for (const ChoiceRecord& record : choices_of(c, device.info(), profile)) {
      const Table& table = profile.table(record.problem);
      if (record.choice.rule < 0 || static_cast<size_t>(record.choice.rule) >= table.rules.size()) {
        continue;
      }
      const Rule& rule = table.rules[static_cast<size_t>(record.choice.rule)];
      const Result<const OpDef*> op = find_op(record.problem.op);
      if (rule.code.empty() || !op.ok() || !seen.insert(&rule).second) {
        continue;
      }
      const std::string now = rule_code(device, **op, profile, record.problem.key, rule);
      if (!now.empty() && now != rule.code) {
        stale.push_back(fmt::format("{} {} {}", record.problem.op, record.problem.key, rule_text(rule)));
      }
    }
  }
  return stale;
}

}  // namespace cudabk
