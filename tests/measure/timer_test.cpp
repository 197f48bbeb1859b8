// Timers over a device whose time is a counter: each replay takes a known time, the first of a queue pays a latency.
#include "measure/timer.h"

#include <gtest/gtest.h>

#include "measure/fake_device.h"

namespace cudabk {
namespace {

class FakeExecution final : public Execution {
 public:
  FakeExecution(FakeStream& stream, LaunchMode mode, double replay_ns) : stream_(stream), mode_(mode), ns_(replay_ns) {}
  const Plan& plan() const override { return plan_; }
  Status run(Stream&) override {
    if (fail) {
      return internal_error("launch failed");
    }
    stream_.time_ns += ns_ + (stream_.queued ? 0 : kLatencyNs);
    stream_.queued = true;
    ++runs;
    return success();
  }
  LaunchMode mode() const override { return mode_; }
  const std::string& fallback_reason() const override { return reason_; }
  void use_graph() override {}
  Result<std::unique_ptr<Execution>> at(const Graph&, const Bindings&) const override {
    return internal_error("not expected");
  }
  ExecGraph* exec_graph() override { return nullptr; }
  void set_observer(LaunchObserver*) override {}
  const std::vector<Work>& works() const override { return works_; }
  Status rebind(const Graph&, const Bindings&) override { return success(); }

  static constexpr double kLatencyNs = 10e3;
  int runs = 0;
  bool fail = false;

 private:
  FakeStream& stream_;
  LaunchMode mode_;
  double ns_;
  Plan plan_;
  std::string reason_;
  std::vector<Work> works_;
};

TEST(ReplayTimer, ShortReplaysAreRepeatedWithinASample) {
  FakeDevice device;
  FakeStream stream;
  FakeExecution execution(stream, LaunchMode::kEager, 2000);
  const auto timer = ReplayTimer::create(device, stream, execution, nullptr, timer_options_for(device.info()));
  ASSERT_TRUE(timer.ok()) << timer.error().message;
  EXPECT_EQ((*timer)->kind(), TimerKind::kEvent);
  EXPECT_GE((*timer)->replays_per_sample(), 16);
  EXPECT_LE((*timer)->replays_per_sample(), 26);
  const int before = execution.runs;
  const auto ns = (*timer)->sample();
  ASSERT_TRUE(ns.ok());
  EXPECT_EQ(execution.runs - before, (*timer)->replays_per_sample());
  EXPECT_NEAR(*ns, 2000, 10e3 / 16 + 1);
  EXPECT_EQ(stream.delays, 0);
}

TEST(ReplayTimer, LongReplaysAreTimedOneByOneAndPerOp) {
  FakeDevice device;
  FakeStream stream;
  FakeExecution execution(stream, LaunchMode::kEager, 800e3);
  TimerOptions options = timer_options_for(device.info());
  options.ops_per_replay = 8;
  const auto timer = ReplayTimer::create(device, stream, execution, nullptr, options);
  ASSERT_TRUE(timer.ok());
  EXPECT_EQ((*timer)->replays_per_sample(), 1);
  EXPECT_NEAR(*(*timer)->sampler()(), 100e3, 10e3 / 8 + 1);
}

TEST(ReplayTimer, GraphReplaysHideTheLatencyOfTheFirstLaunch) {
  FakeDevice device;
  FakeStream stream;
  const auto spin = SpinKernel::create(device);
  ASSERT_TRUE(spin.ok());
  FakeExecution execution(stream, LaunchMode::kGraph, 200e3);
  const auto timer = ReplayTimer::create(device, stream, execution, spin->get(), timer_options_for(device.info()));
  ASSERT_TRUE(timer.ok());
  EXPECT_GT((*timer)->cover_ns(), 10e3);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_DOUBLE_EQ(*(*timer)->sample(), 200e3);  // no latency in it, and not the delay either
  EXPECT_EQ(stream.delays, 1);

  FakeExecution eager(stream, LaunchMode::kEager, 200e3);
  const auto uncovered = ReplayTimer::create(device, stream, eager, spin->get(), timer_options_for(device.info()));
  ASSERT_TRUE(uncovered.ok());
  EXPECT_EQ((*uncovered)->cover_ns(), 0);
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_DOUBLE_EQ(*(*uncovered)->sample(), 210e3);
}

TEST(ReplayTimer, TheEmulatedDeviceUsesTheHostsClock) {
  FakeDevice device;
  device.device_info.emulated = true;
  FakeStream stream;
  FakeExecution execution(stream, LaunchMode::kGraph, 1000);
  const auto timer = ReplayTimer::create(device, stream, execution, nullptr, timer_options_for(device.info()));
  ASSERT_TRUE(timer.ok());
  EXPECT_EQ((*timer)->kind(), TimerKind::kWall);
  EXPECT_EQ(timer_kind_name((*timer)->kind()), "wall");
  EXPECT_EQ((*timer)->replays_per_sample(), 1);
  EXPECT_GE(*(*timer)->sample(), 0);
  EXPECT_FALSE(host_enqueue_ns(device, stream, execution)->has_value());
}

TEST(ReplayTimer, ErrorsOfTheLaunchPass) {
  FakeDevice device;
  FakeStream stream;
  FakeExecution execution(stream, LaunchMode::kEager, 1000);
  const auto timer = ReplayTimer::create(device, stream, execution, nullptr, timer_options_for(device.info()));
  ASSERT_TRUE(timer.ok());
  execution.fail = true;
  ASSERT_FALSE((*timer)->sample().ok());
  EXPECT_FALSE(ReplayTimer::create(device, stream, execution, nullptr, timer_options_for(device.info())).ok());
  EXPECT_FALSE(host_enqueue_ns(device, stream, execution).ok());
}

TEST(HostEnqueue, IsTheTimeOfTheCall) {
  FakeDevice device;
  FakeStream stream;
  FakeExecution execution(stream, LaunchMode::kGraph, 1000);
  const auto ns = host_enqueue_ns(device, stream, execution, 5);
  ASSERT_TRUE(ns.ok());
  ASSERT_TRUE(ns->has_value());
  EXPECT_GE(**ns, 0);
  EXPECT_LT(**ns, 1e6);
  EXPECT_EQ(execution.runs, 5);
}

}  // namespace
}  // namespace cudabk
