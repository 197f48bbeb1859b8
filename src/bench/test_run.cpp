#include "bench/test_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "bench/check.h"
#include "bench/environment.h"
#include "bench/fusion_cases.h"
#include "bench/layer.h"
#include "bench/sweep.h"
#include "core/file.h"
#include "core/hash.h"

namespace cudabk {
namespace {

using AxisValues = std::map<std::string, std::set<std::string>>;

const Axis* find_axis(const OpDef& op, const std::string& name) {
  for (const Axis& axis : op.axes()) {
    if (axis.name == name) {
      return &axis;
    }
  }
  return nullptr;
}

// The values given for the axes of `op`; nullopt when it lacks one of them.
Result<std::optional<AxisValues>> wanted_values(const OpDef& op, const std::map<std::string, std::string>& given) {
  AxisValues values;
  for (const auto& [name, text] : given) {
    const Axis* axis = find_axis(op, name);
    if (axis == nullptr) {
      return std::optional<AxisValues>();
    }
    CUDABK_ASSIGN(const std::vector<CaseParams> expanded, expand_axes(op.name(), {axis, 1}, {{name, text}}, false));
    for (const CaseParams& params : expanded) {
      // expand_axes leaves the usual value out
      values[name].insert(params.get(name).empty() ? axis->gpu_values.front() : params.get(name));
    }
  }
  return std::optional<AxisValues>(std::move(values));
}

bool has_values(const OpDef& op, const CaseParams& params, const AxisValues& wanted) {
  for (const auto& [name, values] : wanted) {
    std::string value = params.get(name);
    if (value.empty()) {
      const Axis* axis = find_axis(op, name);
      value = axis == nullptr || axis->gpu_values.empty() ? "" : axis->gpu_values.front();
    }
    if (values.count(value) == 0) {
      return false;
    }
  }
  return true;
}

// The table's choice replayed as a graph, every family on its own eagerly: both executors see every shape.
Status add_variants(const OpDef& op, const CaseParams& params, const Selection& selection, const DeviceInfo& device,
                    const Profile* profile, std::vector<BenchCase>& cases) {
  BenchCase base;
  base.op = &op;
  base.target = std::string(op.name());
  base.params = params;
  const bool several = selection.variant == "all" || selection.variant == "full";
  if (several || selection.variant == "auto") {
    cases.push_back(base);
  }
  if (selection.variant == "auto") {
    return success();
  }
  CUDABK_ASSIGN(const std::vector<Variant> variants, variants_for(base, selection.variant, device, profile));
  for (const Variant& variant : variants) {
    if (!variant.family.empty()) {
      cases.push_back(base);
      cases.back().variant = variant;
      cases.back().launch = LaunchMode::kEager;
    }
  }
  return success();
}

// Unlike bench, one mode per case: replicas of a case in other modes only where asked for.
Result<std::vector<BenchCase>> filtered(const std::vector<BenchCase>& cases, const Selection& selection) {
  std::vector<BenchCase> kept;
  for (const BenchCase& c : cases) {
    Selection one = selection;
    if (selection.launch == Mode::kFirst) {  // not asked for
      one.launch = c.launch == LaunchMode::kGraph ? Mode::kFirst : Mode::kSecond;
    }
    one.cache = Mode::kSecond;  // one copy of the case, whose time nobody takes
    one.fusion =
        c.target == fusion_target().name() && selection.fusion == Mode::kFirst ? Mode::kBoth : selection.fusion;
    Result<std::vector<BenchCase>> found = with_modes({c}, one);
    if (!found.ok() && found.error().kind != ErrorKind::kNothing) {
      return std::move(found).error();
    }
    if (found.ok()) {
      kept.insert(kept.end(), found->begin(), found->end());
    }
  }
  return kept;
}

std::string test_command(const BenchCase& c, const TestOptions& options) {
  std::string text = fmt::format("cudabk test {} --filter '^{}$' --variant {} --seed {}", c.target, c.key(),
                                 c.variant.text(), options.seed);
  text += c.launch == LaunchMode::kGraph ? "" : " --launch eager";
  text += c.fusion ? "" : " --fusion off";
  for (const std::string& word : options.base_command) {
    text += " " + word;
  }
  return text;
}

// What the fusion patterns demand of the plan; empty when met.
std::string unmet_fusion(const BenchCase& c, const Plan& plan, const std::set<std::string>& disabled) {
  if (c.op != &fusion_target()) {
    return "";
  }
  const FusionExpectation expected = fusion_expectation(c.params.get("pattern"));
  bool fired = false;
  std::string near_miss = "no rule looked at it";
  for (const FusionRecord& record : plan.fusions) {
    fired = fired || (record.count > 0 && record.rule == expected.rule);
    near_miss = record.near_miss.empty() ? near_miss : record.near_miss;
  }
  const bool allowed = c.fusion && disabled.count(std::string(expected.rule)) == 0;
  if (expected.fires == FusionExpectation::Fires::kMust && allowed && !fired) {
    return fmt::format("{} did not fire: {}", expected.rule, near_miss);
  }
  if (fired && (expected.fires == FusionExpectation::Fires::kMustNot || !allowed)) {
    return fmt::format("{} fired and must not", expected.rule);
  }
  return "";
}

class TestRunner {
 public:
  TestRunner(Device& device, const Profile& profile, const TestOptions& options)
      : device_(device), profile_(profile), options_(options) {}

  CaseResult run(const BenchCase& c) {
    CaseResult row;
    row.key = c.key();
    row.target = c.target;
    row.params = c.params;
    row.variant = c.variant.text();
    row.launch = c.launch == LaunchMode::kGraph ? "graph" : "eager";
    row.fusion = c.fusion ? "on" : "off";
    row.cache = c.cold ? "cold" : "hot";
    row.seed = options_.seed;
    row.copies = 1;
    row.command = test_command(c, options_);
    row.status = CaseStatus::kOk;
    if (const Status tested = test(c, row); !tested.ok()) {
      row.status = status_of_error(tested.error());
      row.message = tested.error().message;
    }
    return row;
  }

 private:
  Status test(const BenchCase& c, CaseResult& row) {
    {
      Graph probe;
      CUDABK_ASSIGN(const Tensor* t, c.op->build(probe, c.params));
      if (const Support s = c.op->supports(*t, device_.info()); !s) {
        return unsupported(s.reason);
      }
    }
    ReplicaOptions replica_options;
    replica_options.seed = options_.seed;
    CUDABK_ASSIGN(replica_options.distribution, parse_distribution(options_.distribution));
    BackendOptions backend_options;
    backend_options.mode = c.launch;
    backend_options.plan.fusion = c.fusion;
    backend_options.plan.disabled_rules = options_.no_fuse;
    backend_options.plan.profile = &profile_;
    backend_options.plan.forced_family = c.variant.family;
    backend_options.plan.forced_config = c.variant.config;
    CUDABK_ASSIGN(const auto backend, Backend::create(device_, backend_options));
    replica_options.layouts = backend_options.plan;
    CUDABK_ASSIGN(const auto replicas, Replicas::create(device_, c, replica_options));
    CUDABK_ASSIGN(const auto execution, backend->prepare(replicas->graph(), replicas->bindings()));
    const Plan& plan = execution->plan();
    if (!plan.choices.empty()) {
      row.family = plan.choices.front().choice.family;
      row.config = plan.choices.front().choice.config;
      row.rule = plan.choices.front().choice.rule;
    }
    row.launches = static_cast<int>(plan.launches.size());
    row.fallback = execution->fallback_reason();
    row.layout = replicas->layout();
    row.repack = replicas->repacked();
    CUDABK_TRY(execution->run(backend->stream()));
    CUDABK_TRY(backend->stream().synchronize());
    CUDABK_ASSIGN(row.check, check_copy(*replicas, plan, 0, {true, options_.seed}));
    const std::string unmet = unmet_fusion(c, plan, options_.no_fuse);
    if (row.check.passed && unmet.empty()) {
      return success();
    }
    const Error wrong{ErrorKind::kWrongOutput, row.check.passed ? unmet : row.check.worst};
    if (!options_.dump_dir.empty()) {
      CUDABK_TRY(dump(*replicas, row, wrong.message));
    }
    return wrong;
  }

  // DIR/<hash of the key>/case.txt and one .bin per tensor in memory: leaves as filled, results as the device left
  // them.
  Status dump(const Replicas& replicas, const CaseResult& row, const std::string& message) const {
    const std::filesystem::path folder = std::filesystem::path(options_.dump_dir) / sha256_hex(row.key).substr(0, 12);
    std::string text = fmt::format("{}\n{}\n{}\n", row.key, message, row.command);
    for (const Tensor* t : replicas.tensors(0)) {
      if (t->view_src != nullptr || is_empty(*t)) {
        continue;
      }
      CUDABK_ASSIGN(const std::vector<std::byte> bytes, replicas.download(*t));
      const std::string file = fmt::format("{}_{}.bin", t->id, t->name);
      CUDABK_TRY(write_file_atomic(folder / file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
      text += fmt::format("{} {}\n", file, cudabk::describe(*t));
    }
    return write_file_atomic(folder / "case.txt", text);
  }

  Device& device_;
  const Profile& profile_;
  const TestOptions& options_;
};

}  // namespace

std::vector<const OpDef*> test_targets() {
  std::vector<const OpDef*> targets(all_ops().begin(), all_ops().end());
  targets.push_back(&fusion_target());
  targets.push_back(&layer_target());
  return targets;
}

Result<const OpDef*> find_test_target(std::string_view name) {
  std::vector<std::string> names;
  for (const OpDef* target : test_targets()) {
    for (const std::string_view candidate : {target->name(), target->alias()}) {
      if (!candidate.empty()) {
        names.emplace_back(candidate);
      }
    }
  }
  CUDABK_ASSIGN(const std::string found, match_word("op", name, names));
  for (const OpDef* target : test_targets()) {
    if (target->name() == found || target->alias() == found) {
      return target;
    }
  }
  return internal_error("test target vanished");
}

Result<std::vector<BenchCase>> test_cases(std::span<const OpDef* const> targets, const Selection& selection,
                                          const DeviceInfo& device, const Profile* profile) {
  std::vector<BenchCase> cases;
  size_t known = 0;
  std::optional<Error> refusal;  // the first op's to which the values are unknown
  const bool several = selection.variant == "all" || selection.variant == "full";
  for (const OpDef* op : targets) {
    Result<std::optional<AxisValues>> values = wanted_values(*op, selection.axes);
    if (!values.ok() && targets.size() > 1) {  // of another op, perhaps
      refusal = refusal ? refusal : std::optional(std::move(values).error());
      continue;
    }
    CUDABK_ASSIGN(const std::optional<AxisValues> wanted, std::move(values));
    if (!wanted && targets.size() == 1) {
      CUDABK_TRY(expand_axes(op->name(), op->axes(), selection.axes, true));  // says which axis is unknown
    }
    if (!wanted || (targets.size() > 1 && !several && !parse_variant(selection.variant, *op).ok())) {
      continue;
    }
    for (const CaseParams& params : op->test_cases()) {
      ++known;
      if (has_values(*op, params, *wanted)) {
        CUDABK_TRY(add_variants(*op, params, selection, device, profile, cases));
      }
    }
  }
  if (known == 0 && refusal) {
    return *std::move(refusal);
  }
  CUDABK_ASSIGN(std::vector<BenchCase> kept, filtered(cases, selection));
  if (kept.empty()) {
    return Error{ErrorKind::kNothing, fmt::format("nothing selected: none of {} test cases has these values and passes "
                                                  "--filter/--exclude (cudabk test --list shows all)",
                                                  known)};
  }
  return kept;
}

Result<RunResult> run_tests(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                            const TestOptions& options, RunObserver& observer) {
  RunOptions run_options;
  run_options.tags = options.tags;
  run_options.arguments = options.arguments;
  RunResult run;
  run.environment = describe_environment(device, profile, run_options);
  run.limits.note = "tests measure nothing";
  observer.limits_known(run.environment, run.limits);
  TestRunner runner(device, profile, options);
  const auto start = std::chrono::steady_clock::now();
  run.complete = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto stop = [&] {
      run.complete = false;
      run.incomplete_reason = fmt::format("interrupted after {} of {} cases", i, cases.size());
    };
    if (options.interrupted != nullptr && *options.interrupted) {
      stop();
      break;
    }
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double left = i == 0 ? -1 : elapsed / static_cast<double>(i) * static_cast<double>(cases.size() - i);
    observer.case_started(i, cases.size(), cases[i], left);
    CaseResult row = runner.run(cases[i]);
    if (row.status == CaseStatus::kInterrupted) {
      stop();
      break;
    }
    run.cases.push_back(std::move(row));
    observer.case_done(run.cases.back());
  }
  return run;
}

}  // namespace cudabk
