#include "measure/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "measure/statistics.h"

namespace cudabk {
namespace {

constexpr double kCoverMarginNs = 15e3;  // launch latency of the first replay and of the events
constexpr double kCoverFactor = 1.5;     // over the measured enqueue time, for jitter of the host
constexpr double kMaxCoverNs = 20e6;     // a longer queue is not worth covering: latency is then a small share

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string_view timer_kind_name(TimerKind kind) { return kind == TimerKind::kEvent ? "event" : "wall"; }

TimerOptions timer_options_for(const DeviceInfo& device) {
  TimerOptions options;
  options.kind = device.emulated ? TimerKind::kWall : TimerKind::kEvent;
  if (device.emulated) {
    options.min_sample_ns = 0;  // the host's clock resolves every replay
    options.cover_launch_latency = false;
  }
  return options;
}

Result<std::unique_ptr<ReplayTimer>> ReplayTimer::create(Device& device, Stream& stream, Execution& execution,
                                                         SpinKernel* spin, const TimerOptions& options) {
  std::unique_ptr<ReplayTimer> timer(new ReplayTimer(stream, execution, options));
  if (options.kind == TimerKind::kEvent) {
    CUDABK_ASSIGN(timer->begin_, device.create_event());
    CUDABK_ASSIGN(timer->end_, device.create_event());
  }
  CUDABK_TRY(timer->calibrate(spin));
  return timer;
}

Status ReplayTimer::calibrate(SpinKernel* spin) {
  CUDABK_TRY(execution_.run(stream_));  // first-run costs are nobody's
  CUDABK_TRY(stream_.synchronize());
  CUDABK_ASSIGN(double first_ns, replay_ns());
  if (options_.min_sample_ns > first_ns) {
    // Launch latency is part of a single short replay: time ten, so that the count does not come out too small.
    replays_ = std::min<int64_t>(10, options_.max_replays);
    CUDABK_ASSIGN(first_ns, replay_ns());
  }
  const double wanted = std::ceil(options_.min_sample_ns / std::max(first_ns, 1.0));
  replays_ = std::clamp<int64_t>(static_cast<int64_t>(wanted), 1, std::max<int64_t>(1, options_.max_replays));

  const bool coverable = spin != nullptr && options_.kind == TimerKind::kEvent && options_.cover_launch_latency &&
                         execution_.mode() == LaunchMode::kGraph;
  if (!coverable) {
    return success();
  }
  CUDABK_TRY(stream_.synchronize());
  const double begin = now_ns();
  for (int64_t i = 0; i < replays_; ++i) {
    CUDABK_TRY(execution_.run(stream_));
  }
  const double enqueue_ns = now_ns() - begin;
  CUDABK_TRY(stream_.synchronize());
  cover_ns_ = std::min(kMaxCoverNs, kCoverFactor * enqueue_ns + kCoverMarginNs);
  cover_ = spin->delay(cover_ns_);
  return success();
}

Result<double> ReplayTimer::replay_ns() {
  CUDABK_ASSIGN(const double total, options_.kind == TimerKind::kEvent ? event_ns() : wall_ns());
  return total / static_cast<double>(replays_);
}

Result<double> ReplayTimer::sample() {
  CUDABK_ASSIGN(const double ns, replay_ns());
  return ns / static_cast<double>(std::max<int64_t>(1, options_.ops_per_replay));
}

Result<double> ReplayTimer::event_ns() {
  if (cover_.has_value()) {
    CUDABK_TRY(stream_.run(*cover_));
  }
  CUDABK_TRY(stream_.record(*begin_));
  for (int64_t i = 0; i < replays_; ++i) {
    CUDABK_TRY(execution_.run(stream_));
  }
  CUDABK_TRY(stream_.record(*end_));
  return end_->elapsed_ns(*begin_);
}

Result<double> ReplayTimer::wall_ns() {
  CUDABK_TRY(stream_.synchronize());
  const double begin = now_ns();
  for (int64_t i = 0; i < replays_; ++i) {
    CUDABK_TRY(execution_.run(stream_));
  }
  CUDABK_TRY(stream_.synchronize());
  return now_ns() - begin;
}

Result<std::optional<double>> host_enqueue_ns(const Device& device, Stream& stream, Execution& execution, int repeats) {
  if (device.info().emulated) {
    return std::optional<double>();
  }
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    CUDABK_TRY(stream.synchronize());
    const double begin = now_ns();
    CUDABK_TRY(execution.run(stream));
    times.push_back(now_ns() - begin);
  }
  CUDABK_TRY(stream.synchronize());
  return median(times);
}

}  // namespace cudabk
