#include "bench/kernel_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "backend/layouts.h"
#include "backend/plan.h"
#include "bench/cases.h"
#include "core/pattern.h"
#include "ops/op_def.h"

namespace cudabk {

namespace {

// Variants by what identifies them; the planner's form of the key wins over the lists', so that what is built ahead is
// what is asked for later.
class VariantSet {
 public:
  enum class Origin { kProfile, kDefault, kListed, kSampled };

  void add(const KernelKey& key, Origin origin) {
    const auto [at, is_new] = variants_.try_emplace(key.header + " " + normalized_entry(key.entry));
    KernelVariant& slot = at->second;
    if (slot.key.entry.empty() || slot.key.args_bytes == 0) {
      slot.key = key;
    }
    slot.by_default |= origin == Origin::kProfile;
    slot.shipped |= origin == Origin::kProfile || origin == Origin::kDefault;
    slot.sampled = origin == Origin::kSampled && (is_new || slot.sampled);
  }
  const std::map<std::string, KernelVariant>& variants() const { return variants_; }

 private:
  std::map<std::string, KernelVariant> variants_;
};

FamilySet all_families() {
  FamilySet families;
  for (const OpDef* op : all_ops()) {
    families.by_op[std::string(op->name())] = op->families();
  }
  return families;
}

// The profile that would be found for the device, and every other built-in one of its architecture.
Result<std::vector<Profile>> profiles_for(const DeviceInfo& device) {
  const FamilySet families = all_families();
  std::vector<Profile> profiles;
  CUDABK_ASSIGN(Profile found, find_profile(device, {}, {}, families));
  profiles.push_back(std::move(found));
  for (const EmbeddedProfile& embedded : embedded_profiles()) {
    CUDABK_ASSIGN(Profile profile, parse_profile(embedded.json, std::string(embedded.name), families));
    if (profile.device.arch == device.arch) {
      profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

std::vector<CaseParams> cases_of(const OpDef& op) {
  std::vector<CaseParams> cases = op.test_cases();
  if (auto defaults = expand_axes(op.name(), op.axes(), {}, /*emulated=*/false); defaults.ok()) {
    cases.insert(cases.end(), defaults->begin(), defaults->end());
  }
  return cases;
}

// Plans graphs under many options and collects what the plans launch.
class Collector {
 public:
  Collector(const DeviceInfo& device, const std::vector<Profile>& profiles, VariantSet& set)
      : device_(device), profiles_(profiles), set_(set) {}

  // What the profiles choose for the case, and every family as configured by default.
  void collect(const OpDef& op, const CaseParams& params) {
    Graph graph;
    if (!op.build(graph, params).ok()) {
      return;
    }
    for (const Profile& profile : profiles_) {
      choose_layouts(graph, device_, PlanOptions{.profile = &profile});
      add_plan(graph, PlanOptions{.profile = &profile}, VariantSet::Origin::kProfile);
    }
    for (const Family& family : op.families()) {
      add_forced(
          graph, family, [](const ConfigParam& param) { return param.fallback; }, VariantSet::Origin::kDefault);
    }
  }

  // Up to `count` variants that are not in the set yet: random cases, families and configurations.
  void sample(int count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<const OpDef*, std::vector<CaseParams>>> tunable;
    for (const OpDef* op : all_ops()) {
      if (!op->families().empty()) {
        tunable.emplace_back(op, cases_of(*op));
      }
    }
    const size_t wanted = set_.variants().size() + static_cast<size_t>(count);
    for (int attempt = 0; attempt < count * kAttemptsPerSample && set_.variants().size() < wanted; ++attempt) {
      const auto& [op, cases] = tunable[random() % tunable.size()];
      Graph graph;
      if (op->build(graph, cases[random() % cases.size()]).ok()) {
        add_forced(
            graph, op->families()[random() % op->families().size()],
            [&random](const ConfigParam& param) { return param.values[random() % param.values.size()]; },
            VariantSet::Origin::kSampled);
      }
    }
  }

 private:
  static constexpr int kAttemptsPerSample = 50;  // many configurations are not applicable, or known already

  // In the layout with which the family can run.
  void add_forced(Graph& graph, const Family& family, const std::function<int(const ConfigParam&)>& value_of,
                  VariantSet::Origin origin) {
    PlanOptions options{.profile = &profiles_.front(), .forced_family = family.name};
    for (const ConfigParam& param : family.params) {
      options.forced_config[param.name] = value_of(param);
    }
    choose_layouts(graph, device_, options);
    add_plan(graph, options, origin);
  }

  // A family or configuration that is not applicable here has no plan; that is not an error of the sweep.
  void add_plan(const Graph& graph, const PlanOptions& options, VariantSet::Origin origin) {
    if (const Result<Plan> plan = make_plan(graph, device_, options); plan.ok()) {
      for (const KernelKey& key : plan->kernels()) {
        set_.add(key, origin);
      }
    }
  }

  const DeviceInfo& device_;
  const std::vector<Profile>& profiles_;
  VariantSet& set_;
};

VariantResult build_one(KernelCompiler& compiler, const VariantJob& job) {
  VariantResult result{job, VariantOutcome::kFailed, {}, {}};
  const Result<CompiledKernel> kernel = compiler.compile(job.variant.key, job.arch);
  if (kernel.ok()) {
    result.report = kernel->report;
    result.outcome = kernel->report.from_cache ? VariantOutcome::kCached : VariantOutcome::kCompiled;
  } else {
    result.message = kernel.error().message;
    // The platform layer's word for it, in a static_assert (kernels/platform/device_mma.h).
    if (result.message.find("\"not applicable: ") != std::string::npos) {
      result.outcome = VariantOutcome::kNotApplicable;
    }
  }
  return result;
}

}  // namespace

Result<DeviceInfo> posed_device(std::string_view arch) {
  CUDABK_ASSIGN(const std::unique_ptr<Device> device, open_device(fmt::format("host@{}", arch), {}));
  DeviceInfo info = device->info();
  info.emulated = false;  // variants that only a GPU can run count
  return info;
}

Result<std::vector<KernelVariant>> kernel_variants(std::string_view arch, const VariantSelection& selection) {
  CUDABK_ASSIGN(const std::regex filter, compile_pattern(selection.filter));
  CUDABK_ASSIGN(const DeviceInfo device, posed_device(arch));
  CUDABK_ASSIGN(const std::vector<Profile> profiles, profiles_for(device));
  VariantSet set;
  Collector collector(device, profiles, set);
  for (const OpDef* op : all_ops()) {
    for (const CaseParams& params : cases_of(*op)) {
      collector.collect(*op, params);
    }
  }
  for (const ListedKernel& listed : listed_kernels()) {
    set.add({std::string(listed.header), std::string(listed.entry), 0}, VariantSet::Origin::kListed);
  }
  collector.sample(selection.samples, selection.seed);
  std::vector<KernelVariant> variants;
  for (const auto& [name, variant] : set.variants()) {
    const std::string printed = variant.key.header + " " + variant.key.entry;
    if (std::regex_search(name, filter) || std::regex_search(printed, filter)) {
      variants.push_back(variant);
    }
  }
  return variants;
}

Status build_variants(KernelCompiler& compiler, const std::vector<VariantJob>& jobs, int threads,
                      const std::function<bool(const VariantResult&)>& done) {
  if (auto version = compiler.compiler_version(); !version.ok()) {
    return std::move(version).error();
  }
  std::atomic<size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex reporting;
  const auto work = [&] {
    for (size_t i = next++; i < jobs.size() && !stop; i = next++) {
      const VariantResult result = build_one(compiler, jobs[i]);
      std::lock_guard lock(reporting);
      if (!stop && !done(result)) {
        stop = true;
      }
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads && static_cast<size_t>(t) < jobs.size(); ++t) {
    others.emplace_back(work);
  }
  work();
  for (std::thread& thread : others) {
    thread.join();
  }
  return success();
}

}  // namespace cudabk
