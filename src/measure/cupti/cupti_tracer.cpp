#include "measure/cupti/cupti_tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <thread>

#include "measure/cupti/activity_collector.h"
#include "measure/graph_nodes.h"
#include "measure/statistics.h"

namespace cudabk {
namespace {

constexpr int kFlushAttempts = 20;                            // of completed buffers, before a forced flush
constexpr auto kFlushPause = std::chrono::microseconds(500);  // records arrive a little after the work is done
constexpr int kFewestReplays = 3;
constexpr CUpti_ExternalCorrelationKind kExternalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

constexpr std::array kDeviceKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET,
                                     CUPTI_ACTIVITY_KIND_MEMCPY};
// External correlation records come with API records, so those have to be on too.
constexpr std::array kCorrelationKinds = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
                                          CUPTI_ACTIVITY_KIND_DRIVER};

GraphNodeChains::NodeType node_type(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return GraphNodeChains::NodeType::kKernel;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return GraphNodeChains::NodeType::kMemset;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return GraphNodeChains::NodeType::kMemcpy;
    default:
      return GraphNodeChains::NodeType::kOther;
  }
}

// Takes samples, and before those that count as many as it takes for clock and power to settle.
class Pacer {
 public:
  Pacer(const TraceOptions& options, double settle_ns)
      : sample_(options.sample),
        replays_(std::max<int64_t>(1, options.replays_per_sample)),
        others_(std::max<int64_t>(0, options.kernels_around_sample)),
        settle_ns_(settle_ns) {}

  Status settle() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double, std::nano>(settle_ns_);
    do {
      CUDABK_TRY(sample_());
      ++uncounted_;
    } while (std::chrono::steady_clock::now() < until);
    return success();
  }
  Status take(int64_t samples, std::vector<double>& replay_ns) {
    for (int64_t i = 0; i < samples; ++i) {
      CUDABK_ASSIGN(const double ns, sample_());
      replay_ns.push_back(ns);
    }
    return success();
  }
  int64_t replays_per_sample() const { return replays_; }
  int64_t uncounted_replays() const { return uncounted_ * replays_; }
  int64_t others(int64_t samples) const { return (uncounted_ + samples) * others_; }
  void begin() { uncounted_ = 0; }

 private:
  const SampleFn& sample_;
  int64_t replays_, others_, uncounted_ = 0;
  double settle_ns_;
};

// Pushes the external id of a launch around it.
class CorrelatingObserver final : public LaunchObserver {
 public:
  CorrelatingObserver(const CuptiApi& api, uint32_t session) : api_(api), session_(session) {}
  void before_launch(size_t index) override {
    replay_ += last_ >= 0 && static_cast<int64_t>(index) <= last_ ? 1 : 0;
    last_ = static_cast<int64_t>(index);
    const ExternalId id{session_, static_cast<uint32_t>(replay_), static_cast<uint32_t>(index)};
    failed_ = api_.activity_push_external_correlation_id(kExternalKind, id.pack()) != CUPTI_SUCCESS || failed_;
  }
  void after_launch(size_t) override {
    uint64_t last = 0;
    failed_ = api_.activity_pop_external_correlation_id(kExternalKind, &last) != CUPTI_SUCCESS || failed_;
  }
  bool failed() const { return failed_; }

 private:
  const CuptiApi& api_;
  uint32_t session_;
  int64_t replay_ = 0;
  int64_t last_ = -1;  // launch
  bool failed_ = false;
};

class CuptiTracer final : public KernelTracer {
 public:
  CuptiTracer(const CuptiApi& api, Device& device) : api_(api), device_(device), collector_(api) {}
  ~CuptiTracer() override;
  Status start();

  Result<TraceReport> trace(Stream& stream, Execution& execution, const TraceOptions& options) override;
  void forget_graphs() override { chains_.clear(); }
  std::string idle_state() const override {
    return "CUPTI activity off; subscriber kept for callbacks of graph building only";
  }

 private:
  static void CUPTIAPI on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  void on_graph_node(CUpti_CallbackId id, const CUpti_GraphData& data);
  Status enable(bool correlation);
  Status disable();
  Result<double> timed_replay(Stream& stream, Execution& execution);
  Status collect(int64_t wanted);
  Result<std::map<uint64_t, size_t>> graph_roots(Execution& execution, std::vector<int64_t>& expected);
  std::vector<int64_t> eager_expected(const Execution& execution) const;
  Result<TraceReport> traced_session(Stream& stream, Execution& execution, Pacer& pacer, int64_t samples,
                                     std::vector<double>& replay_ns);

  const CuptiApi& api_;
  Device& device_;
  ActivityCollector collector_;
  GraphNodeChains chains_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::unique_ptr<Event> begin_, end_;
  std::vector<CUpti_ActivityKind> enabled_;
  uint32_t session_ = 0;
};

CuptiTracer::~CuptiTracer() {
  (void)disable();  // nothing left to tell anyone
  if (subscriber_ != nullptr) {
    (void)api_.unsubscribe(subscriber_);
  }
  (void)api_.activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  collector_.uninstall();
}

Status CuptiTracer::start() {
  if (ActivityCollector::busy()) {
    return unsupported("CUPTI: this process traces already");
  }
  CUDABK_TRY(api_.check(api_.subscribe(&subscriber_, &on_callback, this), "cuptiSubscribe"));
  CUDABK_TRY(collector_.install());
  for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
    CUDABK_TRY(api_.check(api_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id), "cuptiEnableCallback"));
  }
  CUDABK_TRY(enable(true));  // finds out about permissions now, not in the middle of a measurement
  CUDABK_TRY(disable());
  CUDABK_ASSIGN(begin_, device_.create_event());
  CUDABK_ASSIGN(end_, device_.create_event());
  return success();
}

void CuptiTracer::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr) {
    return;
  }
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  if (resource->resourceDescriptor != nullptr) {
    static_cast<CuptiTracer*>(self)->on_graph_node(id, *static_cast<CUpti_GraphData*>(resource->resourceDescriptor));
  }
}

void CuptiTracer::on_graph_node(CUpti_CallbackId id, const CUpti_GraphData& data) {
  uint64_t node = 0;
  if (data.node == nullptr || api_.get_graph_node_id(data.node, &node) != CUPTI_SUCCESS) {
    return;  // its records will count as unmatched and lost
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    chains_.created(node, node_type(data.nodeType));
    return;
  }
  uint64_t original = 0;
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED && data.originalNode != nullptr &&
      api_.get_graph_node_id(data.originalNode, &original) == CUPTI_SUCCESS) {
    chains_.cloned(node, original, node_type(data.nodeType));
  }
}

Status CuptiTracer::enable(bool correlation) {
  std::vector<CUpti_ActivityKind> kinds(kDeviceKinds.begin(), kDeviceKinds.end());
  if (correlation) {
    kinds.insert(kinds.begin(), kCorrelationKinds.begin(), kCorrelationKinds.end());
  }
  for (const CUpti_ActivityKind kind : kinds) {
    if (auto status = api_.check(api_.activity_enable(kind), "cuptiActivityEnable"); !status.ok()) {
      (void)disable();  // the first error is the one to report
      return status;
    }
    enabled_.push_back(kind);
  }
  return success();
}

Status CuptiTracer::disable() {
  Status first = success();
  for (; !enabled_.empty(); enabled_.pop_back()) {
    auto status = api_.check(api_.activity_disable(enabled_.back()), "cuptiActivityDisable");
    if (first.ok() && !status.ok()) {
      first = std::move(status);
    }
  }
  return first;
}

// ns, between events.
Result<double> CuptiTracer::timed_replay(Stream& stream, Execution& execution) {
  CUDABK_TRY(stream.record(*begin_));
  CUDABK_TRY(execution.run(stream));
  CUDABK_TRY(stream.record(*end_));
  return end_->elapsed_ns(*begin_);
}

// Flushes until `wanted` records are here, then by force. `wanted` < 0: by force at once.
Status CuptiTracer::collect(int64_t wanted) {
  for (int attempt = 0; attempt < kFlushAttempts && wanted >= 0; ++attempt) {
    CUDABK_TRY(api_.check(api_.activity_flush_all(0), "cuptiActivityFlushAll"));
    if (static_cast<int64_t>(collector_.count()) >= wanted) {
      return success();
    }
    std::this_thread::sleep_for(kFlushPause);
  }
  return api_.check(api_.activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
}

// The nodes that launches became before instantiation, by id; and how many of them leave records.
Result<std::map<uint64_t, size_t>> CuptiTracer::graph_roots(Execution& execution, std::vector<int64_t>& expected) {
  std::map<uint64_t, size_t> roots;
  const size_t launches = execution.plan().launches.size();
  expected.assign(launches, 0);
  for (size_t launch = 0; launch < launches; ++launch) {
    for (void* handle : execution.exec_graph()->native_nodes(launch)) {
      uint64_t id = 0;
      CUDABK_TRY(api_.check(api_.get_graph_node_id(static_cast<CUgraphNode>(handle), &id), "cuptiGetGraphNodeId"));
      const auto type = chains_.type(id);
      if (!type.has_value()) {
        return internal_error("the graph was built before the tracer was created: its nodes are not known");
      }
      roots[id] = launch;
      expected[launch] += *type != GraphNodeChains::NodeType::kOther ? 1 : 0;
    }
  }
  return roots;
}

std::vector<int64_t> CuptiTracer::eager_expected(const Execution& execution) const {
  std::vector<int64_t> expected;
  for (const Work& work : execution.works()) {
    if (const auto* fill = std::get_if<FillCall>(&work)) {
      expected.push_back(fill->bytes > 0 ? 1 : 0);
    } else if (const auto* kernel = std::get_if<KernelLaunch>(&work)) {
      expected.push_back(kernel->grid.count() > 0 ? 1 : 0);
    } else {
      expected.push_back(-1);  // the library decides
    }
  }
  return expected;
}

// One session: everything from switching records on to having them in order. Adds ns per replay of its samples.
Result<TraceReport> CuptiTracer::traced_session(Stream& stream, Execution& execution, Pacer& pacer, int64_t samples,
                                                std::vector<double>& replay_ns) {
  TraceInput input;
  input.graph = execution.mode() == LaunchMode::kGraph;
  input.launches = execution.plan().launches.size();
  std::map<uint64_t, size_t> roots;
  if (input.graph) {
    CUDABK_ASSIGN(roots, graph_roots(execution, input.expected));
  } else {
    input.expected = eager_expected(execution);
  }
  session_ = session_ % 0xfffe + 1;
  input.session = session_;
  CorrelatingObserver observer(api_, session_);

  CUDABK_TRY(collect(-1));
  (void)collector_.take();  // leftovers of earlier sessions
  CUDABK_TRY(enable(!input.graph));
  if (!input.graph) {
    execution.set_observer(&observer);
  }
  pacer.begin();
  Status run = pacer.settle();
  if (run.ok()) {
    run = pacer.take(samples, replay_ns);
  }
  execution.set_observer(nullptr);
  Status synchronized = stream.synchronize();
  input.uncounted = pacer.uncounted_replays();
  input.replays = input.uncounted + samples * pacer.replays_per_sample();
  input.others = input.graph ? pacer.others(samples) : 0;
  int64_t wanted = input.others;
  for (const int64_t count : input.expected) {
    wanted += input.replays * std::max<int64_t>(1, count);
  }
  Status collected = collect(wanted);
  Status disabled = disable();
  CUDABK_TRY(std::move(run));
  CUDABK_TRY(std::move(synchronized));
  CUDABK_TRY(std::move(collected));
  CUDABK_TRY(std::move(disabled));
  if (observer.failed()) {
    return unsupported("CUPTI: external correlation ids could not be pushed");
  }

  ActivityCollector::Records records = collector_.take();
  input.activities = std::move(records.activities);
  input.external = std::move(records.external);
  input.dropped = records.dropped;
  input.launch_of_node = [this, &roots](uint64_t node) { return chains_.resolve(node, roots); };
  return assemble_trace(std::move(input));
}

Result<TraceReport> CuptiTracer::trace(Stream& stream, Execution& execution, const TraceOptions& given) {
  if (execution.plan().launches.empty()) {
    return invalid("there is nothing to trace: the plan has no launches");
  }
  TraceOptions options = given;
  if (!options.sample) {
    options.sample = [&] { return timed_replay(stream, execution); };
    options.replays_per_sample = 1;
    options.kernels_around_sample = 0;
  }
  for (int i = 0; i < 2; ++i) {
    CUDABK_TRY(options.sample());
  }
  CUDABK_ASSIGN(const double once, options.sample());
  const double affordable = options.max_time_s * 1e9 / std::max(once, 1.0);
  const auto replays =
      static_cast<int64_t>(std::clamp<double>(affordable, kFewestReplays, std::max(kFewestReplays, options.replays)));
  const int64_t samples = (replays + options.replays_per_sample - 1) / options.replays_per_sample;
  const int64_t rounds = std::clamp<int64_t>(options.rounds, 1, samples);

  Pacer pacer(options, std::min(options.settle_s, options.max_time_s / static_cast<double>(2 * rounds)) * 1e9);
  std::vector<TraceReport> parts;
  std::vector<double> untraced, traced;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t share = samples / rounds + (round < samples % rounds ? 1 : 0);
    CUDABK_TRY(pacer.settle());
    CUDABK_TRY(pacer.take(share, untraced));
    CUDABK_ASSIGN(TraceReport part, traced_session(stream, execution, pacer, share, traced));
    parts.push_back(std::move(part));
  }
  TraceReport report = merge_traces(std::move(parts), execution.plan().launches.size());
  report.sample_untraced_ns = median(untraced).value_or(0);
  report.sample_traced_ns = median(traced).value_or(0);
  report.overhead_percent =
      report.sample_untraced_ns > 0 ? 100 * (report.sample_traced_ns / report.sample_untraced_ns - 1) : 0;
  return report;
}

}  // namespace

Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device& device) {
  CUDABK_ASSIGN(const CuptiApi* api, cupti_api());
  return make_cupti_tracer(device, *api);
}

Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device& device, const CuptiApi& api) {
  auto tracer = std::make_unique<CuptiTracer>(api, device);
  CUDABK_TRY(tracer->start());
  return std::unique_ptr<KernelTracer>(std::move(tracer));
}

}  // namespace cudabk
