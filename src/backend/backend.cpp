#include "backend/backend.h"

#include "backend/execution.h"

namespace cudabk {

Result<std::unique_ptr<Backend>> Backend::create(Device& device, BackendOptions options) {
  if (options.plan.profile == nullptr) {
    return internal_error("a backend needs a profile");
  }
  std::unique_ptr<Backend> backend(new Backend(device, std::move(options)));
  CUDABK_ASSIGN(backend->stream_, device.create_stream());
  return backend;
}

Result<std::unique_ptr<Execution>> Backend::prepare(const Graph& graph, const Bindings& bindings, LaunchMode mode) {
  CUDABK_ASSIGN(Plan plan, make_plan(graph, device_.info(), options_.plan));
  ++counters_.plans_made;
  CUDABK_ASSIGN(ScratchPool::Lease lease, pool_.lease(plan.scratch_bytes));
  Bindings bound = bindings;
  bound.scratch = lease.ptr();
  return make_execution(std::move(plan), graph, bound, device_, mode, std::move(lease), counters_);
}

// A graph seen before is replayed; the same graph at other addresses is patched; anything else is planned.
Status Backend::compute(const Graph& graph, const Bindings& bindings) {
  const uint64_t print = fingerprint(graph);
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    if (it->fingerprint != print) {
      continue;
    }
    cache_.splice(cache_.begin(), cache_, it);
    ++counters_.plans_reused;
    if (it->bindings.tensors != bindings.tensors) {
      CUDABK_TRY(it->execution->rebind(graph, bindings));
      it->bindings = bindings;
      ++counters_.graphs_patched;
    }
    return it->execution->run(*stream_);
  }
  CUDABK_ASSIGN(auto execution, prepare(graph, bindings));
  while (cache_.size() >= options_.max_cached_graphs) {
    CUDABK_TRY(stream_->synchronize());  // the evicted graph may still run
    cache_.pop_back();
    ++counters_.graphs_evicted;
  }
  cache_.push_front({print, bindings, std::move(execution)});
  return cache_.front().execution->run(*stream_);
}

Status Backend::synchronize() { return stream_->synchronize(); }

}  // namespace cudabk
