#include "backend/execution.h"

#include <fmt/format.h>

namespace cudabk {
namespace {

class PlanExecution final : public Execution {
 public:
  PlanExecution(Plan plan, Device& device, std::shared_ptr<ScratchPool::Lease> lease, BackendCounters& counters)
      : plan_(std::move(plan)), device_(device), lease_(std::move(lease)), counters_(counters) {}

  Status bind(const Graph& graph, const Bindings& bindings) {
    CUDABK_ASSIGN(works_, bound_works(graph, bindings));
    return success();
  }

  void use_graph() override {
    if (exec_ || !fallback_reason_.empty()) {
      return;
    }
    auto built = device_.build_graph(works_);
    if (built.ok()) {
      exec_ = std::move(built).value();
      ++counters_.graphs_built;
    } else {
      fallback_reason_ = built.error().message;
    }
  }

  Result<std::unique_ptr<Execution>> at(const Graph& graph, const Bindings& bindings) const override {
    auto other = std::make_unique<PlanExecution>(plan_, device_, lease_, counters_);
    Bindings with_scratch = bindings;
    with_scratch.scratch = lease_->ptr();
    CUDABK_TRY(other->bind(graph, with_scratch));
    return std::unique_ptr<Execution>(std::move(other));
  }

  const Plan& plan() const override { return plan_; }
  LaunchMode mode() const override { return exec_ ? LaunchMode::kGraph : LaunchMode::kEager; }
  const std::string& fallback_reason() const override { return fallback_reason_; }
  ExecGraph* exec_graph() override { return exec_.get(); }
  void set_observer(LaunchObserver* observer) override { observer_ = observer; }
  const std::vector<Work>& works() const override { return works_; }

  Status run(Stream& stream) override {
    if (exec_) {
      ++counters_.graphs_replayed;
      return stream.run(*exec_);
    }
    for (size_t i = 0; i < works_.size(); ++i) {
      if (observer_ != nullptr) {
        observer_->before_launch(i);
      }
      Status status = stream.run(works_[i]);
      if (observer_ != nullptr) {
        observer_->after_launch(i);
      }
      if (!status.ok()) {
        return std::move(status).error().with_context(plan_.launches[i].launch.label);
      }
    }
    return success();
  }

  Status rebind(const Graph& graph, const Bindings& bindings) override {
    Bindings with_scratch = bindings;
    with_scratch.scratch = lease_->ptr();
    CUDABK_ASSIGN(std::vector<Work> works, bound_works(graph, with_scratch));
    for (size_t i = 0; exec_ && i < works.size(); ++i) {
      if (!same_addresses(works_[i], works[i])) {
        CUDABK_TRY(exec_->update(i, works[i]));
      }
    }
    works_ = std::move(works);
    return success();
  }

 private:
  Result<std::vector<Work>> bound_works(const Graph& graph, const Bindings& bindings) {
    std::vector<Work> works;
    works.reserve(plan_.launches.size());
    for (const PlannedLaunch& l : plan_.launches) {
      auto work = bind_launch(l.launch, plan_, graph, bindings, device_);
      if (!work.ok()) {
        return std::move(work).error().with_context(l.launch.label);
      }
      works.push_back(std::move(work).value());
    }
    return works;
  }

  // Both come from the same launch, so only addresses can differ.
  static bool same_addresses(const Work& a, const Work& b) {
    if (const auto* kernel = std::get_if<KernelLaunch>(&a)) {
      return kernel->args == std::get<KernelLaunch>(b).args;
    }
    if (const auto* gemm = std::get_if<GemmCall>(&a)) {
      const auto& other = std::get<GemmCall>(b);
      return gemm->a == other.a && gemm->b == other.b && gemm->c == other.c;
    }
    return std::get<FillCall>(a).dst == std::get<FillCall>(b).dst;
  }

  Plan plan_;
  Device& device_;
  std::shared_ptr<ScratchPool::Lease> lease_;
  BackendCounters& counters_;
  std::vector<Work> works_;
  std::unique_ptr<ExecGraph> exec_;
  std::string fallback_reason_;
  LaunchObserver* observer_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Execution>> make_execution(Plan plan, const Graph& graph, const Bindings& bindings,
                                                  Device& device, LaunchMode mode, ScratchPool::Lease lease,
                                                  BackendCounters& counters) {
  CUDABK_TRY(device.prepare(plan.kernels()));
  auto execution = std::make_unique<PlanExecution>(std::move(plan), device,
                                                   std::make_shared<ScratchPool::Lease>(std::move(lease)), counters);
  CUDABK_TRY(execution->bind(graph, bindings));
  if (mode == LaunchMode::kGraph) {
    execution->use_graph();
  }
  return std::unique_ptr<Execution>(std::move(execution));
}

}  // namespace cudabk
