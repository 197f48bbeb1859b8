// Times replays of an Execution: between two events on its stream, or by the host's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "backend/backend.h"
#include "core/result.h"
#include "device/device.h"
#include "measure/clock.h"
#include "measure/sampler.h"

namespace cudabk {

enum class TimerKind { kEvent, kWall };
std::string_view timer_kind_name(TimerKind kind);  // "event", "wall"

struct TimerOptions {
  TimerKind kind = TimerKind::kEvent;
  double min_sample_ns = 50e3;  // shorter replays are repeated within a sample: event resolution is about 0.5 us
  int64_t max_replays = 2000;   // per sample
  int64_t ops_per_replay = 1;   // what a sample is divided by
  // Graph replays queue up behind a spinning kernel, so that the sample holds device time and not the latency of the
  // first launch. Eager replays never do: the host's launch rate belongs to them.
  bool cover_launch_latency = true;
};

// The default for a device: events on a GPU, the host's clock on the emulated device.
TimerOptions timer_options_for(const DeviceInfo& device);

class ReplayTimer {
 public:
  // Runs the execution a few times to calibrate (blocks). All references outlive the timer; `spin` may be nullptr (no
  // cover then).
  static Result<std::unique_ptr<ReplayTimer>> create(Device& device, Stream& stream, Execution& execution,
                                                     SpinKernel* spin, const TimerOptions& options);

  // ns per op; blocks. Usable as a SampleFn.
  Result<double> sample();
  SampleFn sampler() {
    return [this] { return sample(); };
  }
  // The same sample in ns per replay.
  Result<double> replay_ns();

  TimerKind kind() const { return options_.kind; }
  int64_t replays_per_sample() const { return replays_; }
  double cover_ns() const { return cover_ns_; }  // 0: launches are not covered

 private:
  ReplayTimer(Stream& stream, Execution& execution, const TimerOptions& options)
      : stream_(stream), execution_(execution), options_(options) {}
  Status calibrate(SpinKernel* spin);
  Result<double> event_ns();  // of replays_ replays
  Result<double> wall_ns();

  Stream& stream_;
  Execution& execution_;
  TimerOptions options_;
  std::unique_ptr<Event> begin_, end_;
  std::optional<Work> cover_;
  double cover_ns_ = 0;
  int64_t replays_ = 1;
};

// Median host time of Execution::run, ns, with the stream idle before each call. nullopt on the emulated device, where
// run does the work itself.
Result<std::optional<double>> host_enqueue_ns(const Device& device, Stream& stream, Execution& execution,
                                              int repeats = 11);

}  // namespace cudabk
