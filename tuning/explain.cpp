#include "tuning/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/buffers.h"
#include "backend/fusion.h"
#include "backend/layouts.h"
#include "ops/frag_weights.h"
#include "tuning/device_bench.h"

namespace cudabk {
namespace {

// Floor of one kernel in a CUDA graph, ramp and drain included. hardware: about 1.3 us on Hopper.
constexpr double kLaunchFloorNs = 1300;

struct DataSheet {
  std::string_view arch, card;
  double gbps, tflops;  // memory bandwidth; dense 16-bit tensor cores with f32 accumulation
};
// hardware: published figures of one common card per architecture.
constexpr DataSheet kDataSheets[] = {
    {"sm_75", "T4", 320, 65},           {"sm_80", "A100 80 GB", 2039, 312}, {"sm_86", "RTX 3090", 936, 71},
    {"sm_89", "RTX 4090", 1008, 165},   {"sm_90a", "H200", 4800, 989},      {"sm_100a", "B200", 8000, 2250},
    {"sm_120a", "RTX 5090", 1792, 209},
};

std::string gemm_text(const GemmWork& gemm) {
  const GemmCall& c = gemm.call;
  return fmt::format("gemm {} x {} x {} {}{}{}", c.m, c.n, c.k, dtype_name(c.type_ab),
                     c.batch > 1 ? fmt::format(", {} times", c.batch) : "", c.pointer_arrays ? " by pointers" : "");
}

class Explainer {
 public:
  Explainer(Device& device, const Profile& profile, const OpDef& op, const ExplainOptions& options)
      : device_(device),
        info_(options.pose_as ? *options.pose_as : device.info()),
        profile_(profile),
        op_(op),
        options_(options) {}

  Result<Explanation> run(const CaseParams& params) {
    CUDABK_ASSIGN(const Tensor* t, op_.build(graph_, params));
    PlanOptions plan_options;
    plan_options.profile = &profile_;
    plan_options.fusion = options_.fusion;
    plan_options.disabled_rules = options_.no_fuse;
    plan_options.forced_family = options_.forced_family;
    plan_options.forced_config = options_.forced_config;
    choose_layouts(graph_, info_, plan_options);
    CUDABK_ASSIGN(const Plan plan, make_plan(graph_, info_, plan_options));
    e_.target = std::string(op_.name());
    e_.params = params;
    e_.device = info_;
    e_.profile_source = profile_.source;
    e_.profile_why = profile_.why;
    e_.profile_warnings = profile_.warnings;
    e_.scratch_bytes = plan.scratch_bytes;
    add_layouts();
    e_.cost = op_.cost(*t);
    for (const ChoiceRecord& record : plan.choices) {
      add_choice(record, params);
    }
    for (const PlannedLaunch& launch : plan.launches) {
      add_launch(launch.launch);
    }
    add_fusions(plan);
    predict();
    return std::move(e_);
  }

 private:
  void add_layouts() {
    for (const auto& leaf : graph_.tensors()) {
      if (leaf->usage != Usage::kWeights || leaf->op != kOpNone || !is_quantized(leaf->type)) {
        continue;
      }
      ExplainedLayout layout{leaf->name, "raw", byte_size(*leaf), byte_size(*leaf), ""};
      if (leaf->layout == WeightLayout::kFrag) {
        layout.layout = "frag";
        layout.stored_bytes = allocation_bytes(*leaf);
      } else if (const Support s = frag_can_hold(*leaf, info_); !s) {
        layout.note = s.reason;
      } else {
        layout.note = leaf->layout_wish != LayoutWish::kAuto ? "asked for"
                      : !options_.forced_family.empty()
                          ? fmt::format("{} reads it", options_.forced_family)
                          : fmt::format("the profile gives {} weights the raw layout", dtype_name(leaf->type));
      }
      e_.layouts.push_back(std::move(layout));
    }
  }

  void add_choice(const ChoiceRecord& record, const CaseParams& params) {
    ExplainedChoice c;
    c.node = record.node >= 0 ? graph_.nodes()[static_cast<size_t>(record.node)]->name : std::string();
    if (c.node.empty()) {
      c.node = fmt::format("{}#{}", record.problem.op, record.node);
    }
    c.problem = record.problem;
    c.choice = record.choice;
    c.rule = options_.forced_family.empty() ? "none: last resort of this build" : "none: asked for by name";
    const Table& table = profile_.table(record.problem);
    if (record.choice.rule >= 0 && static_cast<size_t>(record.choice.rule) < table.rules.size()) {
      const Rule& rule = table.rules[static_cast<size_t>(record.choice.rule)];
      c.rule = rule_text(rule);
      c.evidence = rule.evidence;
      c.code = rule.code;
      if (options_.check_stale && !options_.pose_as && !rule.code.empty() && record.problem.op == op_.name()) {
        const std::string now = rule_code(device_, op_, profile_, params.get("type"), rule);
        c.stale = !now.empty() && now != rule.code;
      }
    }
    add_others(record, table, c);
    e_.choices.push_back(std::move(c));
  }

  void add_others(const ChoiceRecord& record, const Table& table, ExplainedChoice& c) {
    const Result<const OpDef*> op = find_op(record.problem.op);
    if (!op.ok()) {
      return;
    }
    for (const Family& family : (*op)->families()) {
      bool named = family.name == record.choice.family;
      for (int i = 0; i < record.choice.rule; ++i) {
        named = named || table.rules[static_cast<size_t>(i)].use == family.name;
      }
      if (named) {
        continue;
      }
      Config config;
      for (const ConfigParam& p : family.params) {
        config[p.name] = p.fallback;
      }
      const Support support = family.applicable(record.problem, config, info_);
      c.others.emplace_back(
          family.name, support ? (options_.forced_family.empty() ? "could run; no earlier rule names it" : "could run")
                               : support.reason);
    }
  }

  void add_launch(const Launch& launch) {
    ExplainedLaunch l;
    l.label = launch.label;
    if (const auto* kernel = std::get_if<KernelWork>(&launch.work)) {
      l.kernel = kernel->key.entry;
      l.grid = kernel->grid;
      l.block = kernel->block;
      l.dynamic_shared_bytes = kernel->shared_bytes;
      add_report(kernel->key, l);
    } else if (const auto* gemm = std::get_if<GemmWork>(&launch.work)) {
      l.kernel = gemm_text(*gemm);
      l.report_note = "library call";
    } else if (const auto* fill = std::get_if<FillWork>(&launch.work)) {
      l.kernel = fmt::format("fill {} bytes", fill->bytes);
      l.report_note = "fill";
    }
    e_.launches.push_back(std::move(l));
  }

  void add_report(const KernelKey& key, ExplainedLaunch& launch) {
    if (!options_.pose_as && !device_.info().emulated) {
      Result<const Kernel*> kernel = device_.kernel(key);
      if (kernel.ok()) {
        launch.report = (*kernel)->report();
      } else {
        launch.report_note = kernel.error().message;
      }
      return;
    }
    if (options_.compiler == nullptr) {
      launch.report_note = "not compiled";
      return;
    }
    Result<CompiledKernel> compiled = options_.compiler->compile(key, info_.arch);
    if (compiled.ok()) {
      launch.report = compiled->report;
    } else {
      launch.report_note = compiled.error().message;
    }
  }

  void add_fusions(const Plan& plan) {
    e_.fusions = plan.fusions;
    for (const FusionRule* rule : fusion_rules()) {
      const bool seen = std::any_of(plan.fusions.begin(), plan.fusions.end(),
                                    [&](const FusionRecord& f) { return f.rule == rule->name(); });
      if (!seen) {
        e_.other_fusions.emplace_back(rule->name());
      }
    }
  }

  void predict() {
    e_.roofs = options_.roofs;
    e_.memory_ns = e_.roofs.read_bytes_per_ns > 0 ? e_.cost.bytes / e_.roofs.read_bytes_per_ns : 0;
    e_.compute_ns = e_.roofs.operations_per_ns > 0 ? e_.cost.operations / e_.roofs.operations_per_ns : 0;
    e_.launch_ns = kLaunchFloorNs * static_cast<double>(e_.launches.size());
    const double work = std::max(e_.memory_ns, e_.compute_ns);
    e_.predicted_ns = work + e_.launch_ns;
    e_.limit = work < e_.launch_ns ? "launches" : e_.memory_ns >= e_.compute_ns ? "memory" : "compute";
  }

  Device& device_;
  const DeviceInfo info_;  // what the plan is for
  const Profile& profile_;
  const OpDef& op_;
  const ExplainOptions& options_;
  Graph graph_;
  Explanation e_;
};

}  // namespace

Result<Roofs> data_sheet_roofs(std::string_view arch) {
  std::string known;
  for (const DataSheet& d : kDataSheets) {
    if (d.arch == arch) {
      return Roofs{d.gbps, d.tflops * 1e3, fmt::format("data sheet of one {} card ({}), not measured", d.arch, d.card)};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", d.arch);
  }
  return invalid(fmt::format("no data sheet for {}; there are {}", arch, known));
}

Result<Explanation> explain(Device& device, const Profile& profile, const OpDef& op, const CaseParams& params,
                            const ExplainOptions& options) {
  return Explainer(device, profile, op, options).run(params);
}

}  // namespace cudabk
