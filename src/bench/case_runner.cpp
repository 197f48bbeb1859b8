#include "bench/case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/layouts.h"
#include "bench/check.h"
#include "bench/environment.h"
#include "bench/row_trace.h"
#include "measure/timer.h"

namespace cudabk {
namespace {

// Launches of one replay: enough to hide launch latency, few enough to build and patch in milliseconds.
constexpr int kMaxCopies = 2048;
// Without the cold rule: enough ops that the latency of the replay itself does not count.
constexpr int kHotCopies = 20;
// More than this above the roof is not noise: the data came from a cache.
constexpr double kAboveRoof = 1.05;
// Kernels compiled in parallel before the first case; later ones are compiled when their case comes.
constexpr size_t kMaxPrefetched = 64;

std::string check_key(const BenchCase& c) {
  return fmt::format("{} {} {} {}", c.target, c.params.text(), c.variant.text(), c.fusion);
}

// How far the samples can be trusted. Nobody trusts the emulator's.
void add_quality_flags(const Measurement& measured, CaseResult& row) {
  const std::pair<bool, const char*> flags[] = {{measured.throttled, "throttled"},
                                                {measured.too_few, "few samples"},
                                                {measured.imprecise, "imprecise"},
                                                {measured.clock_changed, "clock changed"},
                                                {!measured.warmup_settled, "warm-up did not settle"}};
  for (const auto& [set, name] : flags) {
    if (set) {
      row.flags.emplace_back(name);
    }
  }
}

}  // namespace

struct CaseRunner::Prepared {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Replicas> replicas;
  std::unique_ptr<Execution> execution;  // dies before the backend's pool
  std::unique_ptr<ReplayTimer> timer;
};

Result<std::unique_ptr<CaseRunner>> CaseRunner::create(Device& device, const Profile& profile,
                                                       const RunOptions& options) {
  std::unique_ptr<CaseRunner> runner(new CaseRunner(device, profile, options));
  CUDABK_ASSIGN(runner->clock_stream_, device.create_stream());
  if (!device.info().emulated) {
    CUDABK_ASSIGN(runner->spin_, SpinKernel::create(device));
    runner->options_.sampler.read_clock_mhz = clock_reader(device, *runner->spin_, *runner->clock_stream_);
  }
  if (Result<std::unique_ptr<GpuMonitor>> monitor = GpuMonitor::create(device); monitor.ok()) {
    runner->monitor_ = std::move(monitor).value();
  }
  if (options.trace && !device.info().emulated) {
    Result<std::unique_ptr<KernelTracer>> tracer = KernelTracer::create(device);
    if (tracer.ok()) {
      runner->tracer_ = std::move(tracer).value();
    } else if (options.timer == TimerChoice::kCupti) {
      return std::move(tracer).error().with_context("--timer cupti");
    } else {
      runner->trace_note_ = timer_notice(tracer.error());
    }
  } else {
    runner->trace_note_ = device.info().emulated ? "the emulated device has no tracer" : "switched off";
    if (options.timer == TimerChoice::kCupti) {
      return unfit("--timer cupti: kernels cannot be traced here: " + runner->trace_note_);
    }
  }
  return runner;
}

std::map<std::string, std::string> CaseRunner::gpu_facts() const {
  std::map<std::string, std::string> facts;
  if (monitor_ != nullptr) {
    add_gpu_facts(monitor_->read(), facts);
  }
  return facts;
}

CaseResult CaseRunner::run(const BenchCase& c, int repetition, const RunLimits& limits) {
  CaseResult row;
  row.key = c.key();
  row.target = c.target;
  row.params = c.params;
  row.note = c.note;
  row.variant = c.variant.text();
  row.launch = c.launch == LaunchMode::kGraph ? "graph" : "eager";
  row.fusion = c.fusion ? "on" : "off";
  row.cache = c.cold ? "cold" : "hot";
  row.repetition = repetition;
  row.seed = options_.seed;
  row.command = row_command(c, options_);
  if (const Status measured = measure(c, row); measured.ok()) {
    row.status = row.summary || row.launches == 0 ? CaseStatus::kOk : CaseStatus::kNoSamples;
  } else {
    row.status = status_of_error(measured.error());
    row.message = measured.error().message;
  }
  add_flags(row, limits);
  return row;
}

Status CaseRunner::measure(const BenchCase& c, CaseResult& row) {
  Prepared prepared;
  CUDABK_TRY(prepare(c, prepared, row));
  describe_launches(prepared, row);
  CUDABK_TRY(verify(c, prepared, row));
  if (row.launches == 0) {
    row.flags.emplace_back("nothing to launch");
    return success();
  }
  CUDABK_TRY(time(prepared, row));
  if (tracer_ != nullptr) {
    CUDABK_TRY(trace(prepared, row));
  }
  return success();
}

Status CaseRunner::prefetch(const std::vector<BenchCase>& cases) {
  if (device_.info().emulated) {
    return success();
  }
  std::set<KernelKey> keys;
  for (const BenchCase& c : cases) {
    Graph graph;
    if (!c.op->build(graph, c.params).ok()) {
      continue;
    }
    choose_layouts(graph, device_.info(), plan_options(c));
    const Result<Plan> plan = make_plan(graph, device_.info(), plan_options(c));
    if (plan.ok()) {
      for (const KernelKey& key : plan->kernels()) {
        keys.insert(key);
      }
    }
    if (keys.size() >= kMaxPrefetched) {
      break;
    }
  }
  const std::vector<KernelKey> list(keys.begin(), keys.end());
  return device_.prepare(list);
}

PlanOptions CaseRunner::plan_options(const BenchCase& c) const {
  PlanOptions options;
  options.fusion = c.fusion;
  options.disabled_rules = options_.no_fuse;
  options.profile = &profile_;
  options.forced_family = c.variant.family;
  options.forced_config = c.variant.config;
  return options;
}

Status CaseRunner::prepare(const BenchCase& c, Prepared& prepared, CaseResult& row) {
  CUDABK_ASSIGN(const FootprintPlan plan,
                case_footprint(device_, c, c.cold ? CacheMode::kCold : CacheMode::kHot, kMaxCopies, plan_options(c)));
  ReplicaOptions replica_options;
  replica_options.copies = static_cast<int>(plan.copies);
  if (!c.cold && !device_.info().emulated) {
    replica_options.copies = kHotCopies;
  }
  replica_options.share_weights = !c.cold;
  replica_options.share_activations = !c.cold || options_.shared_input;
  replica_options.seed = options_.seed;
  replica_options.layouts = plan_options(c);
  replica_options.interrupted = options_.interrupted;
  CUDABK_ASSIGN(replica_options.distribution, parse_distribution(options_.distribution));
  {
    Graph probe;
    CUDABK_ASSIGN(const Tensor* t, c.op->build(probe, c.params));
    if (const Support s = c.op->supports(*t, device_.info()); !s) {
      return unsupported(s.reason);
    }
    row.cost = c.op->cost(*t);
  }
  CUDABK_ASSIGN(prepared.replicas, Replicas::create(device_, c, replica_options));
  BackendOptions options;
  options.mode = c.launch;
  options.plan = plan_options(c);
  CUDABK_ASSIGN(prepared.backend, Backend::create(device_, options));
  CUDABK_ASSIGN(prepared.execution,
                prepared.backend->prepare(prepared.replicas->graph(), prepared.replicas->bindings()));
  row.copies = replica_options.copies;
  row.weight_bytes = std::min<int64_t>(prepared.replicas->weight_bytes(),
                                       std::llround(row.cost.weight_bytes * static_cast<double>(row.copies)));
  row.layout = prepared.replicas->layout();
  row.repack = prepared.replicas->repacked();
  row.footprint_l2 = plan.l2_ratio;
  row.cold_proven = plan.label == "cold";
  if (plan.label == "warm") {
    row.flags.push_back("not cold: " + plan.reason);
  }
  row.fallback = prepared.execution->fallback_reason();
  return success();
}

Status CaseRunner::verify(const BenchCase& c, Prepared& prepared, CaseResult& row) {
  if (options_.check == CheckMode::kOff) {
    return success();
  }
  const std::string key = check_key(c);
  if (const auto known = checked_.find(key); known != checked_.end() && options_.check == CheckMode::kOnce) {
    row.check = known->second;
  } else {
    CUDABK_TRY(prepared.execution->run(prepared.backend->stream()));
    CUDABK_TRY(prepared.backend->stream().synchronize());
    const Plan& plan = prepared.execution->plan();
    CUDABK_ASSIGN(row.check, check_copy(*prepared.replicas, plan, 0, {false, options_.seed}));
    if (row.check.passed && row.copies > 1) {  // the last op of the replay as well
      CUDABK_ASSIGN(CheckResult last, check_copy(*prepared.replicas, plan, row.copies - 1, {false, options_.seed + 1}));
      last.elements += row.check.elements;
      last.nmse = std::max(last.nmse, row.check.nmse);
      row.check = std::move(last);
    }
    checked_[key] = row.check;
  }
  if (!row.check.passed) {
    return Error{ErrorKind::kWrongOutput,
                 fmt::format("NMSE {:.3g} (bound {:.3g}), {}", row.check.nmse, row.check.tolerance, row.check.worst)};
  }
  return success();
}

Status CaseRunner::time(Prepared& prepared, CaseResult& row) {
  TimerOptions timer_options = timer_options_for(device_.info());
  if (options_.timer == TimerChoice::kEvent || options_.timer == TimerChoice::kWall) {
    timer_options.kind = options_.timer == TimerChoice::kEvent ? TimerKind::kEvent : TimerKind::kWall;
  }
  timer_options.ops_per_replay = row.copies;
  Stream& stream = prepared.backend->stream();
  CUDABK_ASSIGN(prepared.timer, ReplayTimer::create(device_, stream, *prepared.execution, spin_.get(), timer_options));
  row.timer = std::string(timer_kind_name(prepared.timer->kind()));
  CUDABK_ASSIGN(const Measurement measured, measure_samples(prepared.timer->sampler(), options_.sampler));
  row.samples_ns = measured.samples;
  row.summary = measured.summary;
  row.stop_reason = std::string(stop_rule_name(measured.stop));
  row.warmup_replays = static_cast<int>(measured.warmup_samples);
  for (const Batch& batch : measured.batches) {
    if (batch.clock_before_mhz > 0 && batch.clock_after_mhz > 0) {
      row.clocks_mhz.push_back((batch.clock_before_mhz + batch.clock_after_mhz) / 2);
      row.clock_samples.push_back(static_cast<int>(batch.count));
    }
  }
  if (row.clocks_mhz.size() != measured.batches.size()) {
    row.clock_samples.clear();  // the samples of a batch without a clock would go to the next one
  }
  if (measured.stop == StopRule::kInterrupted) {
    row.flags.emplace_back("interrupted");
  }
  if (!device_.info().emulated) {
    add_quality_flags(measured, row);
  } else if (!measured.summary.noise_percent) {
    row.flags.emplace_back("few samples");  // why there is no figure of noise
  }
  if (monitor_ != nullptr) {
    const GpuState state = monitor_->read();
    for (const std::string& reason : state.throttle_reasons) {
      row.flags.push_back("throttled: " + reason);
    }
    if (state.foreign_processes.value_or(0) > 0) {
      row.flags.push_back(fmt::format("{} other processes on the GPU", *state.foreign_processes));
    }
  }
  CUDABK_ASSIGN(const std::optional<double> enqueue, host_enqueue_ns(device_, stream, *prepared.execution));
  if (enqueue) {
    row.host_enqueue_ns = *enqueue / row.copies;
  }
  return success();
}

Status CaseRunner::trace(Prepared& prepared, CaseResult& row) {
  ReplayTimer& timer = *prepared.timer;
  TraceOptions options;
  options.sample = [&timer] { return timer.replay_ns(); };
  options.replays_per_sample = timer.replays_per_sample();
  options.kernels_around_sample = timer.cover_ns() > 0 ? 1 : 0;
  const Result<TraceReport> traced = tracer_->trace(prepared.backend->stream(), *prepared.execution, options);
  prepared.timer.reset();
  prepared.execution.reset();
  tracer_->forget_graphs();
  if (!traced.ok()) {  // the times are there; a fault of the device would show in the next case too
    row.flags.push_back("not traced: " + traced.error().message);
    return options_.timer == TimerChoice::kCupti ? Status(traced.error()) : success();
  }
  add_trace(*traced, options_.timer == TimerChoice::kCupti, row);
  return success();
}

void CaseRunner::describe_launches(const Prepared& prepared, CaseResult& row) const {
  const Plan& plan = prepared.execution->plan();
  row.launches = static_cast<int>(plan.launches.size() / static_cast<size_t>(row.copies));
  if (!plan.choices.empty()) {
    row.family = plan.choices.front().choice.family;
    row.config = plan.choices.front().choice.config;
    row.rule = plan.choices.front().choice.rule;
  }
  for (const FusionRecord& fusion : plan.fusions) {
    if (fusion.count > 0 && std::find(row.fusions.begin(), row.fusions.end(), fusion.rule) == row.fusions.end()) {
      row.fusions.push_back(fusion.rule);
    }
  }
  const std::vector<Work>& works = prepared.execution->works();
  for (size_t i = 0; i < static_cast<size_t>(row.launches) && i < works.size(); ++i) {
    LaunchResult launch;
    launch.label = plan.launches[i].launch.label;
    if (const auto* kernel = std::get_if<KernelLaunch>(&works[i])) {
      const KernelReport& report = kernel->kernel->report();
      launch.kernel = kernel->kernel->key().entry;
      launch.code_hash = report.code_hash;
      launch.grid = {kernel->grid.x, kernel->grid.y, kernel->grid.z};
      launch.block = {kernel->block.x, kernel->block.y, kernel->block.z};
      launch.shared_bytes = kernel->shared_bytes + static_cast<uint32_t>(report.static_shared_bytes);
      launch.registers = report.registers;
      launch.spill_bytes = report.spill_store_bytes + report.spill_load_bytes;
    } else {
      launch.kernel = std::holds_alternative<GemmCall>(works[i]) ? "gemm" : "fill";
    }
    row.breakdown.push_back(std::move(launch));
  }
}

void add_flags(CaseResult& row, const RunLimits& limits) {
  if (row.status == CaseStatus::kOk && !row.check.done) {
    row.flags.emplace_back("unverified");
  }
  if (!row.fallback.empty()) {
    row.flags.push_back("ran eagerly: " + row.fallback);
  }
  const std::optional<double> rate = row.bytes_per_ns();
  if (rate && limits.read_bytes_per_ns && *rate > *limits.read_bytes_per_ns * kAboveRoof) {
    row.flags.emplace_back("cache-resident");
  }
  for (const LaunchResult& launch : row.breakdown) {
    if (launch.spill_bytes > 0) {
      row.flags.emplace_back("spills");
      break;
    }
  }
}

}  // namespace cudabk
