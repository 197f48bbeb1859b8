// Runs graphs: plans are cached by fingerprint, CUDA graphs are reused and patched, scratch comes from a pool.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "backend/plan.h"
#include "backend/scratch_pool.h"

namespace cudabk {

enum class LaunchMode { kEager, kGraph };

// Told of every eager launch; the profiler's correlation ids hang on it.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual void before_launch(size_t index) = 0;  // index in Plan::launches
  virtual void after_launch(size_t index) = 0;
};

// A plan bound to addresses. Replay is cheap and does no allocation. Owns its scratch lease.
class Execution {
 public:
  virtual ~Execution() = default;
  virtual const Plan& plan() const = 0;
  // Enqueues every launch on `stream`. Returns when enqueued.
  virtual Status run(Stream& stream) = 0;
  virtual LaunchMode mode() const = 0;
  // From the next run on as one graph, where the device builds it; does nothing when it is one already.
  virtual void use_graph() = 0;
  // The same plan at other addresses, launch by launch. It shares this one's scratch memory: they run one after the
  // other on one stream.
  virtual Result<std::unique_ptr<Execution>> at(const Graph& graph, const Bindings& bindings) const = 0;
  virtual const std::string& fallback_reason() const = 0;   // why a graph was asked for and not used; else empty
  virtual ExecGraph* exec_graph() = 0;                      // nullptr in eager mode
  virtual void set_observer(LaunchObserver* observer) = 0;  // eager mode; not owned, may be nullptr
  virtual const std::vector<Work>& works() const = 0;       // bound launches, index as in plan().launches
  // New addresses for the same plan: patches works and, in graph mode, the executable's nodes.
  virtual Status rebind(const Graph& graph, const Bindings& bindings) = 0;
};

struct BackendOptions {
  PlanOptions plan;
  LaunchMode mode = LaunchMode::kGraph;
  size_t max_cached_graphs = 16;
};

struct BackendCounters {  // for tests and `-v`
  int64_t plans_made = 0, plans_reused = 0;
  int64_t graphs_built = 0, graphs_patched = 0, graphs_replayed = 0, graphs_evicted = 0;
};

class Backend {
 public:
  // `device` outlives the backend.
  static Result<std::unique_ptr<Backend>> create(Device& device, BackendOptions options);

  // Plans, binds and (graph mode) instantiates, without running. For benchmarks that replay.
  Result<std::unique_ptr<Execution>> prepare(const Graph& graph, const Bindings& bindings) {
    return prepare(graph, bindings, options_.mode);
  }
  Result<std::unique_ptr<Execution>> prepare(const Graph& graph, const Bindings& bindings, LaunchMode mode);
  // The main path: reuse what is cached, run on the backend's stream, do not wait.
  Status compute(const Graph& graph, const Bindings& bindings);
  Status synchronize();

  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  const BackendCounters& counters() const { return counters_; }
  const BackendOptions& options() const { return options_; }

 private:
  Backend(Device& device, BackendOptions options) : device_(device), options_(std::move(options)), pool_(device) {}
  struct Cached {
    uint64_t fingerprint = 0;
    Bindings bindings;
    std::unique_ptr<Execution> execution;
  };

  Device& device_;
  BackendOptions options_;
  ScratchPool pool_;
  std::unique_ptr<Stream> stream_;
  std::list<Cached> cache_;  // most recently used first
  BackendCounters counters_;
};

}  // namespace cudabk
