#include "tuning/device_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/layouts.h"
#include "bench/replicas.h"
#include "core/hash.h"
#include "measure/cache_control.h"
#include "measure/timer.h"
#include "verify/verify.h"

namespace cudabk {
namespace {

constexpr int kMaxCopies = 1024;
// Larger results are compared on a sample of tile edges and random rows and columns.
constexpr int64_t kSampleAbove = 1 << 12;
// Values where a rule says nothing of a dimension: a common size, a multiple of every block length.
constexpr int64_t kTypicalExtent = 4096;

PlanOptions plan_options(const Profile& profile, const Candidate& candidate) {
  PlanOptions options;
  options.profile = &profile;
  options.forced_family = candidate.family;
  options.forced_config = candidate.config;
  return options;
}

// What the leaves of a replica set were filled with.
class LeafValues final : public Values {
 public:
  explicit LeafValues(const Replicas& replicas) : replicas_(replicas) {}
  std::span<const std::byte> bytes(const Tensor& root) const override {
    if (root.op != kOpNone) {
      return {};
    }
    auto [slot, fresh] = memory_.try_emplace(&root);
    if (fresh) {
      if (Result<std::vector<std::byte>> loaded = replicas_.leaf_bytes(root); loaded.ok()) {
        slot->second = std::move(loaded).value();
      }
    }
    return slot->second;
  }

 private:
  const Replicas& replicas_;
  mutable std::map<const Tensor*, std::vector<std::byte>> memory_;
};

class DeviceBench final : public ShapeBench {
 public:
  DeviceBench(Device& device, const Profile& profile, BenchCase bench_case, uint64_t seed, SpinKernel* spin)
      : device_(device), profile_(profile), case_(std::move(bench_case)), seed_(seed), spin_(spin) {}

  Status build() {
    CUDABK_ASSIGN(const Tensor* t, case_.op->build(graph_, case_.params));
    if (const Support s = case_.op->supports(*t, device_.info()); !s) {
      return unsupported(s.reason);
    }
    choose_layouts(graph_, device_.info(), layouts());
    problem_ = case_.op->problem(*t);
    return success();
  }

  const Problem& problem() const override { return problem_; }

  Result<Candidate> default_choice() override {
    CUDABK_ASSIGN(Choice choice, choose(problem_, device_.info(), profile_.table(problem_), case_.op->families()));
    return Candidate{std::move(choice.family), std::move(choice.config)};
  }

  void preload(std::span<const Candidate> candidates) override {
    std::vector<KernelKey> keys;
    for (const Candidate& c : candidates) {
      if (const Result<Plan> plan = make_plan(graph_, device_.info(), plan_options(profile_, c)); plan.ok()) {
        const std::vector<KernelKey> own = plan->kernels();
        keys.insert(keys.end(), own.begin(), own.end());
      }
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (const Status all = device_.prepare(keys); !all.ok()) {
      return;  // the variant that failed says so again, by itself, in code_hash()
    }
  }

  Result<std::string> code_hash(const Candidate& candidate) override {
    CUDABK_TRY(refuse_spills(candidate));
    return candidate_code(device_, *case_.op, profile_, case_.params, candidate);
  }

  Status verify(const Candidate& candidate) override {
    CUDABK_TRY(fill());
    CUDABK_TRY(execution_of(candidate));
    const Running& running = *running_;
    CUDABK_TRY(replicas_->poison_results());
    CUDABK_TRY(running.execution->run(running.backend->stream()));
    CUDABK_TRY(running.backend->stream().synchronize());
    CUDABK_TRY(replicas_->check_guards());
    return compare_output();
  }

  Result<SampleFn> prepare(const Candidate& candidate) override {
    CUDABK_TRY(fill());
    CUDABK_TRY(execution_of(candidate));
    std::shared_ptr<Running> running = running_;
    TimerOptions options = timer_options_for(device_.info());
    options.ops_per_replay = replicas_->copies();
    CUDABK_ASSIGN(running->timer,
                  ReplayTimer::create(device_, running->backend->stream(), *running->execution, spin_, options));
    return SampleFn([running] { return running->timer->sample(); });
  }

 private:
  // The layout that the case gets, whatever the candidate.
  PlanOptions layouts() const { return plan_options(profile_, {}); }

  struct Running {  // order of members: the backend's pool outlives the execution, that the timer
    Candidate candidate;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Execution> execution;
    std::unique_ptr<ReplayTimer> timer;
  };

  // A kernel that spills registers is not a candidate; the default has to run whatever it is.
  Status refuse_spills(const Candidate& candidate) {
    CUDABK_ASSIGN(const Candidate fallback, default_choice());
    if (candidate == fallback) {
      return success();
    }
    CUDABK_ASSIGN(const Plan plan, make_plan(graph_, device_.info(), plan_options(profile_, candidate)));
    for (const KernelKey& key : plan.kernels()) {
      CUDABK_ASSIGN(const Kernel* kernel, device_.kernel(key));
      if (kernel->report().spill_store_bytes + kernel->report().spill_load_bytes > 0) {
        return unsupported(fmt::format("{} spills registers", key.entry));
      }
    }
    return success();
  }

  // Memory and data, at first use.
  Status fill() {
    if (replicas_ != nullptr) {
      return success();
    }
    CUDABK_ASSIGN(const FootprintPlan footprint,
                  case_footprint(device_, case_, CacheMode::kCold, kMaxCopies, layouts()));
    ReplicaOptions options;
    options.copies = static_cast<int>(footprint.copies);
    options.seed = seed_;
    options.layouts = layouts();
    CUDABK_ASSIGN(replicas_, Replicas::create(device_, case_, options));
    return success();
  }

  // Keeps the last one: verify and prepare of the same candidate share it.
  Result<Execution*> execution_of(const Candidate& candidate) {
    if (running_ != nullptr && running_->candidate == candidate && running_->timer == nullptr) {
      return running_->execution.get();
    }
    auto running = std::make_shared<Running>();
    running->candidate = candidate;
    BackendOptions options;
    options.plan = plan_options(profile_, candidate);
    CUDABK_ASSIGN(running->backend, Backend::create(device_, options));
    CUDABK_ASSIGN(running->execution, running->backend->prepare(replicas_->graph(), replicas_->bindings()));
    running_ = std::move(running);
    return running_->execution.get();
  }

  Status compare_output() {
    const Tensor& output = replicas_->output(0);
    if (want_.empty()) {
      region_ = sample_region(output, seed_, kSampleAbove);
      CUDABK_ASSIGN(want_, evaluate_reference(output, region_, LeafValues(*replicas_)));
    }
    CUDABK_ASSIGN(const std::vector<std::byte> memory, replicas_->download(output.root()));
    const auto value = [&](int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
      float x = 0;
      const int64_t at = i0 * output.nb[0] + i1 * output.nb[1] + i2 * output.nb[2] + i3 * output.nb[3];
      std::memcpy(&x, memory.data() + at, sizeof x);
      return static_cast<double>(x);
    };
    std::vector<double> got;
    got.reserve(want_.size());
    for (const int64_t i3 : region_.index[3]) {
      for (const int64_t i2 : region_.index[2]) {
        for (const int64_t i1 : region_.index[1]) {
          for (const int64_t i0 : region_.index[0]) {
            got.push_back(value(i0, i1, i2, i3));
          }
        }
      }
    }
    CompareOptions options;
    options.bound = case_.op->tolerance(output);
    options.row_length = static_cast<int64_t>(region_.index[0].size());
    const Comparison result = compare(got, want_, options);
    if (result.pass()) {
      return success();
    }
    return Error{ErrorKind::kWrongOutput,
                 fmt::format("{} (NMSE {:.3g}, bound {:.3g}, got {:.6g}, reference {:.6g})", result.reason, result.nmse,
                             result.bound, result.got, result.want)};
  }

  Device& device_;
  const Profile& profile_;
  BenchCase case_;
  uint64_t seed_;
  SpinKernel* spin_;
  Graph graph_;  // one op: for plans that are only looked at
  Problem problem_;
  std::unique_ptr<Replicas> replicas_;
  std::shared_ptr<Running> running_;
  Region region_;
  std::vector<double> want_;
};

}  // namespace

CaseParams tune_case(const std::string& key, const TuneShape& shape) {
  CaseParams params;
  params.set("type", key);
  for (const auto& [name, extent] : shape) {
    params.set(name, std::to_string(extent));
  }
  return params;
}

Result<std::string> candidate_code(Device& device, const OpDef& op, const Profile& profile, const CaseParams& params,
                                   const Candidate& candidate) {
  Graph graph;
  CUDABK_TRY(op.build(graph, params));
  choose_layouts(graph, device.info(), plan_options(profile, candidate));
  CUDABK_ASSIGN(const Plan plan, make_plan(graph, device.info(), plan_options(profile, candidate)));
  std::string hashes;
  for (const KernelKey& key : plan.kernels()) {
    CUDABK_ASSIGN(const Kernel* kernel, device.kernel(key));
    hashes += kernel->report().code_hash + "\n";
  }
  return hashes.empty() ? std::string() : "sha256:" + sha256_hex(hashes);
}

std::string rule_code(Device& device, const OpDef& op, const Profile& profile, const std::string& key,
                      const Rule& rule) {
  TuneShape shape = {{"m", kTypicalExtent}, {"n", 1}, {"k", kTypicalExtent}};
  for (auto& [name, extent] : shape) {
    for (const auto& [dim, interval] : rule.when) {
      if (dim == name) {
        extent = std::max<int64_t>(1, interval.high == INT64_MAX ? interval.low : interval.high);
      }
    }
  }
  const Family* family = find_family(op.families(), rule.use);
  if (family == nullptr) {
    return "";
  }
  const Candidate candidate{rule.use, complete_config(*family, rule.config)};
  Result<std::string> code = candidate_code(device, op, profile, tune_case(key, shape), candidate);
  return code.ok() ? std::move(code).value() : "";
}

Result<std::unique_ptr<DeviceBenchFactory>> DeviceBenchFactory::create(Device& device, const OpDef& op,
                                                                       const Profile& profile, uint64_t seed) {
  if (op.families().empty()) {
    return invalid(fmt::format("{} has one kernel only: there is nothing to tune", op.name()));
  }
  std::unique_ptr<DeviceBenchFactory> factory(new DeviceBenchFactory(device, op, profile, seed));
  if (!device.info().emulated) {
    CUDABK_ASSIGN(factory->spin_, SpinKernel::create(device));
  }
  return factory;
}

Result<std::unique_ptr<ShapeBench>> DeviceBenchFactory::open(const std::string& key, const TuneShape& shape) {
  BenchCase bench_case;
  bench_case.op = &op_;
  bench_case.target = std::string(op_.name());
  bench_case.params = tune_case(key, shape);
  auto bench = std::make_unique<DeviceBench>(device_, profile_, std::move(bench_case), seed_, spin_.get());
  CUDABK_TRY(bench->build());
  return std::unique_ptr<ShapeBench>(std::move(bench));
}

}  // namespace cudabk
