// What the device really ran: the activity records of an Execution's replays, matched with its launches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/result.h"
#include "device/device.h"
#include "measure/sampler.h"

namespace cudabk {

enum class ActivityKind { kKernel, kMemset, kMemcpy };

// One activity of the device. Times in ns of the profiler's clock.
struct KernelRecord {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;  // demangled; "memset", "memcpy"
  uint64_t start_ns = 0, end_ns = 0;
  Dim3 grid, block;
  int registers = 0;
  int static_shared_bytes = 0, dynamic_shared_bytes = 0;
  bool timed() const { return start_ns != 0 && end_ns >= start_ns; }
  double duration_ns() const { return static_cast<double>(end_ns - start_ns); }
};

// A launch of the plan in one replay. A library call may be several kernels.
struct LaunchTrace {
  std::vector<KernelRecord> kernels;  // by start time
  double busy_ns = 0;                 // sum of durations
  double gap_before_ns = 0;           // since the end of everything earlier in the replay; negative where they overlap
};

struct ReplayTrace {
  std::vector<LaunchTrace> launches;  // index as in Plan::launches
  double span_ns = 0;                 // last end - first start
  double gap_ns = 0;                  // part of the span in which nothing ran
  int64_t expected = 0, delivered = 0, zero = 0;
  bool valid() const { return zero == 0 && delivered == expected; }
};

// A launch over all valid replays.
struct LaunchSummary {
  double median_ns = 0;  // of busy_ns
  double median_gap_before_ns = 0;
  std::vector<KernelRecord> kernels;  // of one valid replay: names, shapes, registers
};

struct TraceReport {
  std::vector<ReplayTrace> replays;
  std::vector<LaunchSummary> launches;   // empty without a valid replay
  std::optional<double> median_span_ns;  // over valid replays
  std::optional<double> median_busy_ns;  // per replay: sum over its launches
  std::optional<double> median_gap_ns;
  int64_t expected = 0, delivered = 0;  // records of the launches
  int64_t lost = 0;                     // expected and not delivered
  int64_t zero = 0;                     // delivered without times
  int64_t unmatched = 0;                // records of no launch of this execution
  int64_t dropped = 0;                  // as the profiler says: no buffer
  double invalid_percent = 0;           // 100 * (lost + zero) / expected
  bool flagged = false;                 // more than 1 % invalid, or nothing expected or delivered
  double sample_traced_ns = 0;          // per replay, median of the samples with tracing on ...
  double sample_untraced_ns = 0;        // ... and of those in between, with tracing off
  double overhead_percent = 0;          // of tracing
};

struct TraceOptions {
  int replays = 20;         // at least 3
  double max_time_s = 0.5;  // fewer replays are traced when they would take longer
  // Samples with tracing off and on alternate this often, so that both see the same clock, power and temperature.
  int rounds = 4;
  double settle_s = 0.015;  // of replays before the samples of either kind, which end the pause of switching
  // One sample: runs the execution `replays_per_sample` times and returns ns per replay. Give the one that the case was
  // timed with: pauses between replays decide what clock a power limit allows. Empty: one replay between two events.
  SampleFn sample;
  int64_t replays_per_sample = 1;
  int64_t kernels_around_sample = 0;  // that a sample runs besides its replays; graphs only
};

// At most one object at a time per process.
class KernelTracer {
 public:
  // kUnsupported with the reason when kernels cannot be traced: no CUPTI in the build or on the machine, another
  // profiler is attached, no permission, emulated device. The caller then times with events and says so
  // (timer_notice). Create it before the executions it is to trace are prepared: it must see their graphs being built.
  static Result<std::unique_ptr<KernelTracer>> create(Device& device);
  virtual ~KernelTracer() = default;

  // Replays with tracing off and on, in turns. Blocks. Outside of this call no activity is collected. Missing records
  // are no error: see TraceReport::flagged.
  virtual Result<TraceReport> trace(Stream& stream, Execution& execution, const TraceOptions& options) = 0;

  // Drops what is known of graphs. Call it when every execution seen so far is gone; keeps memory bounded.
  virtual void forget_graphs() = 0;

  // What stays active while nothing is traced, for the record.
  virtual std::string idle_state() const = 0;
};

// "kernel times from events: <reason>", one line.
std::string timer_notice(const Error& error);

}  // namespace cudabk
