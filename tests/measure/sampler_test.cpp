// Synthetic samplers over a virtual clock: every rule that ends a measurement, and every flag it sets.
#include "measure/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace cudabk {
namespace {

constexpr uint64_t kSeed = 77;

// A device in virtual time. Each sample costs `cost_s` and returns level * (1 + noise) * factor(time).
struct World {
  double now = 1000;
  double slept = 0;
  double cost_s = 0.0005;
  double level_ns = 100e3;
  double noise = 0.002;
  double clock_cost_s = 0.0003;
  std::function<double(double)> factor = [](double) { return 1.0; };
  std::function<double(double)> clock_mhz = [](double) { return 1980.0; };
  std::mt19937_64 random{kSeed};
  int64_t calls = 0;
  int64_t clock_calls = 0;

  Result<double> sample() {
    ++calls;
    now += cost_s;
    std::normal_distribution<double> draw(0, 1);
    return level_ns * (1 + noise * draw(random)) * factor(now - 1000);
  }
  SampleFn sampler() {
    return [this] { return sample(); };
  }
  SamplerOptions options() {
    SamplerOptions o;
    o.now_s = [this] { return now; };
    o.sleep_s = [this](double s) {
      now += s;
      slept += s;
    };
    return o;
  }
  SamplerOptions options_with_clock() {
    SamplerOptions o = options();
    o.read_clock_mhz = [this]() -> Result<double> {
      ++clock_calls;
      now += clock_cost_s;
      return clock_mhz(now - 1000);
    };
    return o;
  }
};

TEST(Sampler, StopsAtThePrecisionAskedFor) {
  World world;
  world.noise = 0.02;
  const auto m = measure_samples(world.sampler(), world.options());
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->stop, StopRule::kPrecision);
  EXPECT_LE(m->summary.half_width, 0.01);
  EXPECT_GE(m->samples.size(), 20U);
  EXPECT_LT(m->samples.size(), 400U);
  EXPECT_FALSE(m->imprecise);
  EXPECT_FALSE(m->too_few);
  EXPECT_TRUE(m->warmup_settled);
  EXPECT_NEAR(m->summary.median, 100e3, 1e3);
  // Four times the precision needs about sixteen times the samples.
  World finer;
  finer.noise = 0.02;
  SamplerOptions options = finer.options();
  options.precision = 0.0025;
  const auto f = measure_samples(finer.sampler(), options);
  ASSERT_TRUE(f.ok());
  EXPECT_EQ(f->stop, StopRule::kPrecision);
  EXPECT_GT(f->samples.size(), 4 * m->samples.size());
}

TEST(Sampler, NoiseEndsAtTheSampleLimit) {
  World world;
  world.noise = 0.3;
  SamplerOptions options = world.options();
  options.max_samples = 50;
  options.max_time_s = 60;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->stop, StopRule::kMaxSamples);
  EXPECT_EQ(m->samples.size(), 50U);
  EXPECT_TRUE(m->imprecise);
}

// Each sample pays for more than the kernel (known fault: budgets from kernel time alone were overrun fourfold).
TEST(Sampler, WallTimeStaysInTheBudget) {
  for (const double cost : {0.00002, 0.002, 0.03, 0.09}) {
    World world;
    world.cost_s = cost;
    world.level_ns = 5000;
    world.noise = 0.5;
    SamplerOptions options = world.options_with_clock();
    options.max_time_s = 0.1;
    options.max_samples = 1 << 20;
    const auto m = measure_samples(world.sampler(), options);
    ASSERT_TRUE(m.ok()) << cost;
    EXPECT_EQ(m->stop, StopRule::kMaxTime) << cost;
    EXPECT_LE(world.now - 1000, 0.1 + 1.1 * cost + 0.001) << cost;
    EXPECT_GE(m->samples.size(), 1U);
    EXPECT_EQ(m->too_few, m->samples.size() < 20);
  }
}

TEST(Sampler, ASampleLongerThanTheBudgetStillGivesARow) {
  World world;
  world.cost_s = 3;
  const auto m = measure_samples(world.sampler(), world.options());
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->samples.size(), 1U);
  EXPECT_EQ(m->stop, StopRule::kMaxTime);
  EXPECT_TRUE(m->too_few);
  EXPECT_TRUE(m->imprecise);
  EXPECT_LE(world.calls, 2);
}

TEST(Sampler, MinimumTimeAndSamplesAreKept) {
  World world;
  world.noise = 0;
  SamplerOptions options = world.options();
  options.min_time_s = 0.3;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->stop, StopRule::kPrecision);
  EXPECT_GE(m->total_s - m->warmup_s, 0.3);
  World few;
  few.noise = 0;
  options = few.options();
  options.min_samples = 3;  // an interval at 95 % needs six, whatever the caller asks
  const auto f = measure_samples(few.sampler(), options);
  ASSERT_TRUE(f.ok());
  EXPECT_GE(f->samples.size(), 6U);
}

TEST(Sampler, WarmUpOutlastsARampAndIsNotSampled) {
  World world;
  world.factor = [](double t) { return t < 0.1 ? 3 - 20 * t : 1.0; };
  const auto m = measure_samples(world.sampler(), world.options());
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(m->warmup_settled);
  EXPECT_GE(m->warmup_s, 0.1);
  EXPECT_LT(m->summary.max, 102e3);
}

TEST(Sampler, WarmUpWaitsForTheClock) {
  World world;
  world.clock_mhz = [](double t) { return t < 0.15 ? 345 + 10000 * t : 1980.0; };
  const auto m = measure_samples(world.sampler(), world.options_with_clock());
  ASSERT_TRUE(m.ok());
  EXPECT_GE(m->warmup_s, 0.15);
  EXPECT_DOUBLE_EQ(m->clock_mhz, 1980);
  EXPECT_FALSE(m->clock_changed);
}

TEST(Sampler, WarmUpIsCapped) {
  World world;
  world.factor = [](double t) { return std::exp(5 * t); };  // never settles
  const auto m = measure_samples(world.sampler(), world.options());
  ASSERT_TRUE(m.ok());
  EXPECT_FALSE(m->warmup_settled);
  EXPECT_LE(m->warmup_s, 0.3 * 2.0 + 0.01);
  World counted;
  SamplerOptions options = counted.options();
  options.warmup = *parse_warmup("7");
  const auto c = measure_samples(counted.sampler(), options);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->warmup_samples, 7);
}

TEST(Sampler, DriftIsReported) {
  World world;
  world.noise = 0.001;
  world.cost_s = 0.001;
  world.factor = [](double t) { return 1 + 0.25 * t; };  // heats by 25 % a second
  SamplerOptions options = world.options();
  options.warmup = *parse_warmup("1");
  options.precision = 0.0001;
  options.max_time_s = 0.6;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(m->summary.drift.detected);
  EXPECT_GT(m->summary.drift.percent, 5);
}

TEST(Sampler, TwoClockLevelsAreFlaggedAndCyclesAgree) {
  World world;
  world.noise = 0.001;
  world.clock_mhz = [](double t) { return static_cast<int>(t / 0.1) % 2 == 0 ? 1980.0 : 1700.0; };
  world.factor = [&world](double t) { return 1980.0 / world.clock_mhz(t); };
  SamplerOptions options = world.options_with_clock();
  options.warmup = *parse_warmup("3");
  options.precision = 0.0001;
  options.max_time_s = 1;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(m->clock_changed);
  EXPECT_FALSE(m->throttled);  // 1700 is above 75 % of 1980
  EXPECT_NEAR(m->median_cycles, 100e3 * 1.980, 0.02 * 100e3 * 1.980);
  for (const Batch& batch : m->batches) {
    EXPECT_GT(batch.clock_before_mhz, 0);
    EXPECT_GT(batch.clock_after_mhz, 0);
  }
}

// Known fault: a threshold above the reachable clock left empty tables that looked like success.
TEST(Sampler, AThresholdNeverReachedEndsInAMarkedRow) {
  World world;
  world.clock_mhz = [](double) { return 1000.0; };
  SamplerOptions options = world.options_with_clock();
  options.reference_clock_mhz = 1980;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_FALSE(m->samples.empty());
  EXPECT_TRUE(m->throttled);
  EXPECT_EQ(m->retries, options.max_retries);
  EXPECT_LE(world.now - 1000, options.max_time_s + 0.1);
  EXPECT_LE(world.slept, 0.05 * 15 + 1e-9);
}

TEST(Sampler, RetriesDropTheThrottledBatch) {
  World world;
  world.noise = 0.001;
  world.clock_mhz = [](double t) { return t > 0.03 && t < 0.09 ? 1200.0 : 1980.0; };
  world.factor = [&world](double t) { return 1980.0 / world.clock_mhz(t); };
  SamplerOptions options = world.options_with_clock();
  options.warmup = *parse_warmup("20");
  options.precision = 0.0002;
  const auto m = measure_samples(world.sampler(), options);
  ASSERT_TRUE(m.ok());
  EXPECT_GE(m->retries, 1);
  EXPECT_FALSE(m->throttled);
  EXPECT_LT(m->summary.p90, 101e3);
}

TEST(Sampler, ThrottlingCanMarkOrFail) {
  World world;
  world.clock_mhz = [](double) { return 1000.0; };
  SamplerOptions options = world.options_with_clock();
  options.reference_clock_mhz = 1980;
  options.on_throttle = ThrottleAction::kMark;
  const auto marked = measure_samples(world.sampler(), options);
  ASSERT_TRUE(marked.ok());
  EXPECT_TRUE(marked->throttled);
  EXPECT_EQ(marked->retries, 0);
  options.on_throttle = ThrottleAction::kFail;
  const auto failed = measure_samples(world.sampler(), options);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kInconclusive);
  EXPECT_NE(failed.error().message.find("1000 MHz"), std::string::npos);
}

TEST(Sampler, InterruptionKeepsWhatWasTaken) {
  World world;
  world.noise = 0.5;
  std::atomic<bool> flag = false;
  SamplerOptions options = world.options();
  options.interrupted = &flag;
  options.warmup = *parse_warmup("10");
  const auto m = measure_samples(
      [&]() -> Result<double> {
        flag = world.calls >= 100;
        return world.sample();
      },
      options);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->stop, StopRule::kInterrupted);
  EXPECT_GT(m->samples.size(), 10U);
  EXPECT_LE(world.calls, 102);
  const auto none = measure_samples(world.sampler(), options);  // flag is still set
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kInterrupted);
}

// The emulated device ends a kernel in its midst: the sample is an error, those before it are kept.
TEST(Sampler, ASampleThatIsInterruptedEndsTheMeasurement) {
  World world;
  SamplerOptions options = world.options();
  int64_t good = 30;
  const SampleFn sample = [&]() -> Result<double> {
    return world.calls < good ? world.sample() : Result<double>(Error{ErrorKind::kInterrupted, "interrupted"});
  };
  options.warmup = *parse_warmup("10");
  const auto m = measure_samples(sample, options);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->stop, StopRule::kInterrupted);
  EXPECT_EQ(m->samples.size(), 20U);
  EXPECT_EQ(m->invalid_samples, 0);
  for (const char* warmup : {"10", "auto", "1s"}) {
    world.calls = 0;
    good = 5;  // in the warm-up
    options.warmup = *parse_warmup(warmup);
    const auto none = measure_samples(sample, options);
    ASSERT_FALSE(none.ok()) << warmup;
    EXPECT_EQ(none.error().kind, ErrorKind::kInterrupted) << warmup;
  }
  world.calls = 0;
  good = 7;  // the untimed visit, and two rounds
  const std::vector<SampleFn> both{sample, sample};
  const auto rounds = sample_interleaved(both, 10, options);
  ASSERT_TRUE(rounds.ok()) << rounds.error().message;
  EXPECT_EQ(rounds->stop, StopRule::kInterrupted);
  EXPECT_EQ(rounds->rounds, 2);
  EXPECT_EQ(rounds->samples[0].size(), 2U);
}

TEST(Sampler, InvalidSamplesAreCountedAndNeverKept) {
  World world;
  const auto broken = [&]() -> Result<double> {
    const auto v = world.sample();
    return world.calls % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : *v;
  };
  const auto m = measure_samples(broken, world.options());
  ASSERT_TRUE(m.ok());
  EXPECT_GT(m->invalid_samples, 0);
  for (double v : m->samples) {
    EXPECT_TRUE(std::isfinite(v));
  }
  SamplerOptions options = world.options();
  options.max_samples = 30;
  const auto none = measure_samples([&]() -> Result<double> { return world.now += 1e-4, 0.0; }, options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kInconclusive);
}

TEST(Sampler, ErrorsOfTheSamplePass) {
  World world;
  const auto m = measure_samples([]() -> Result<double> { return internal_error("launch failed"); }, world.options());
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().message, "launch failed");
}

TEST(Sampler, InterleavedRoundsShareDrift) {
  World world;
  world.noise = 0.001;
  world.factor = [](double t) { return 1 + t; };
  const std::vector<SampleFn> candidates = {world.sampler(), [&world]() -> Result<double> {
                                              const auto v = world.sample();
                                              return *v * 1.05;
                                            }};
  SamplerOptions options = world.options();
  const auto r = sample_interleaved(candidates, 60, options, kSeed);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->rounds, 60);
  ASSERT_EQ(r->samples[0].size(), 60U);
  ASSERT_EQ(r->samples[1].size(), 60U);
  const PairedResult p = *compare_paired(r->samples[0], r->samples[1], 0.01);
  EXPECT_TRUE(p.a_faster) << "seed " << kSeed;
  EXPECT_NEAR(p.ratio, 1 / 1.05, 0.005);

  options.max_time_s = 0.01;
  const auto brief = sample_interleaved(candidates, 1000, options, kSeed);
  ASSERT_TRUE(brief.ok());
  EXPECT_EQ(brief->stop, StopRule::kMaxTime);
  EXPECT_GE(brief->rounds, 1);
  EXPECT_LT(brief->rounds, 20);
}

TEST(SamplerOptions, FlagsParse) {
  EXPECT_EQ(parse_warmup("auto")->rule, Warmup::Rule::kAuto);
  EXPECT_EQ(parse_warmup("12")->count, 12);
  EXPECT_DOUBLE_EQ(parse_warmup("0.5s")->seconds, 0.5);
  EXPECT_DOUBLE_EQ(parse_warmup("200ms")->seconds, 0.2);
  EXPECT_FALSE(parse_warmup("-3").ok());
  EXPECT_FALSE(parse_warmup("soon").ok());
  EXPECT_DOUBLE_EQ(*parse_fraction("1%", 1), 0.01);
  EXPECT_DOUBLE_EQ(*parse_fraction("0.02", 1), 0.02);
  EXPECT_FALSE(parse_fraction("0", 1).ok());
  EXPECT_FALSE(parse_fraction("150%", 1).ok());
  EXPECT_FALSE(parse_fraction("%", 1).ok());
  EXPECT_EQ(*parse_throttle_action("mark"), ThrottleAction::kMark);
  EXPECT_FALSE(parse_throttle_action("ignore").ok());
}

}  // namespace
}  // namespace cudabk
