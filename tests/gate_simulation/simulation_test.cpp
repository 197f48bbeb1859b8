// Does the gate raise few false alarms, and does it find what is there? On simulated suites whose truth is known.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "gate_simulation/noise.h"
#include "results/confirm.h"
#include "results/gate.h"

namespace cudabk::test {
namespace {

constexpr size_t kCases = 100;
constexpr size_t kNone = SIZE_MAX;

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kFewSuites = 25;  // instrumented builds are slow
#else
constexpr size_t kFewSuites = 150;
#endif

// Suites to simulate: a few in the test suite, 2000 for docs/gating.md.
size_t suites() {
  const char* text = std::getenv("CUDABK_GATE_SUITES");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : kFewSuites;
}

// Other seeds than those that the rules were adjusted with: CUDABK_GATE_SEED is added to every one.
uint64_t seed_from(uint64_t first) {
  const char* text = std::getenv("CUDABK_GATE_SEED");
  return first + (text != nullptr ? std::strtoull(text, nullptr, 10) : 0);
}

// With a change: a quarter of a large number, since every one counts.
size_t suites_with_change() { return std::max(std::min(suites(), kFewSuites), suites() / 4); }

struct Tally {
  size_t suites = 0, alarms = 0, inconclusive = 0, inconclusive_cases = 0, found = 0, found_at_once = 0, others = 0;
};

// One gate on one suite, as `gate --baseline --candidate --confirm N` works: suspects of the candidate are measured
// again, the baseline is not.
void run_gate(const NoiseModel& model, size_t changed, double factor, int rounds, uint64_t seed, Tally& tally) {
  std::mt19937_64 random(seed);
  const Suite suite = make_suite(kCases, model, random);
  const ResultSet baseline = measure(suite, model, kNone, 1, {}, "old", random);
  const ResultSet candidate = measure(suite, model, changed, factor, {}, "new", random);
  const GateOptions options;
  Comparison comparison = compare_results(baseline, candidate, options.compare);
  if (changed != kNone) {
    tally.found_at_once += comparison.cases[changed].verdict == Verdict::kRegressed ? 1 : 0;
  }
  const Status confirmed = confirm(comparison, options.compare, rounds, [&](const auto& cases, int) {
    std::vector<size_t> only;
    for (const CaseComparison* row : cases) {
      only.push_back(simulated_index(row->key));
    }
    return Result(std::pair{baseline, measure(suite, model, changed, factor, only, "new", random)});
  });
  EXPECT_TRUE(confirmed.ok());
  const GateVerdict verdict = decide(std::move(comparison), options);
  ++tally.suites;
  tally.inconclusive += verdict.exit_status() == kExitInconclusive ? 1 : 0;
  tally.inconclusive_cases += verdict.comparison.count(Verdict::kInconclusive);
  size_t regressed = verdict.comparison.count(Verdict::kRegressed);
  if (changed != kNone && verdict.comparison.cases[changed].verdict == Verdict::kRegressed) {
    ++tally.found;
    --regressed;
  }
  tally.alarms += regressed > 0 ? 1 : 0;
}

double percent(size_t part, size_t whole) { return 100.0 * static_cast<double>(part) / static_cast<double>(whole); }

void print(const char* what, uint64_t first_seed, const Tally& t) {
  fmt::print(
      "{}: {} suites of {} cases, seeds from {}: false alarms in {} ({:.2f} %), exit 3 in {} ({:.1f} %), "
      "inconclusive cases {:.3f} %\n",
      what, t.suites, kCases, first_seed, t.alarms, percent(t.alarms, t.suites), t.inconclusive,
      percent(t.inconclusive, t.suites), percent(t.inconclusive_cases, t.suites * kCases));
}

Tally without_change(const NoiseModel& model, int rounds, size_t count, uint64_t first_seed) {
  Tally tally;
  for (size_t i = 0; i < count; ++i) {
    run_gate(model, kNone, 1, rounds, first_seed + i, tally);
  }
  return tally;
}

Tally with_change(const NoiseModel& model, double factor, int rounds, size_t count, uint64_t first_seed) {
  Tally tally;
  for (size_t i = 0; i < count; ++i) {
    run_gate(model, i % kCases, factor, rounds, first_seed + i, tally);
  }
  return tally;
}

TEST(GateSimulation, FewFalseAlarmsWithoutConfirmation) {
  const Tally t = without_change({}, 0, suites(), seed_from(1));
  print("A/A, --confirm 0", seed_from(1), t);
  EXPECT_LT(percent(t.alarms, t.suites), 1.0);
}

TEST(GateSimulation, FewFalseAlarmsWithConfirmation) {
  const Tally t = without_change({}, 2, suites(), seed_from(100'001));
  print("A/A, --confirm 2", seed_from(100'001), t);
  EXPECT_LT(percent(t.alarms, t.suites), 1.0);
  EXPECT_LT(percent(t.inconclusive, t.suites), 10.0);
}

TEST(GateSimulation, FewFalseAlarmsWhereTheClockIsNotKnown) {
  NoiseModel model;
  model.clock_known = false;
  model.to_low = 0.001;  // without a clock only rare phases can be told from slower code
  const Tally t = without_change(model, 2, suites(), seed_from(200'001));
  print("A/A, clock not known, --confirm 2", seed_from(200'001), t);
  EXPECT_LT(percent(t.alarms, t.suites), 1.0);
}

TEST(GateSimulation, AFivePercentSlowdownOfOneCaseIsFound) {
  const Tally t = with_change({}, 1.05, 2, suites_with_change(), seed_from(300'001));
  print("one case 5 % slower, --confirm 2", seed_from(300'001), t);
  fmt::print("  found in {} of {} ({:.1f} %), in the first comparison already in {:.1f} %\n", t.found, t.suites,
             percent(t.found, t.suites), percent(t.found_at_once, t.suites));
  EXPECT_GE(percent(t.found, t.suites), 95.0);
  EXPECT_LT(percent(t.alarms, t.suites), 1.0);
}

// Noise that the rules were not adjusted to. The bounds are wider, and docs/gating.md has the figures.
struct Harsher {
  const char* name;
  void (*change)(NoiseModel& model);
};

constexpr Harsher kHarsher[] = {
    {"every noise doubled",
     [](NoiseModel& m) {
       m.run_offset *= 2, m.drift *= 2, m.case_offset *= 2, m.sample_low *= 2, m.sample_high *= 2, m.slow_sigma *= 2;
       m.outlier_chance *= 2, m.clock_error *= 2;
     }},
    {"at the low clock a fifth of the time", [](NoiseModel& m) { m.to_low = 0.03; }},
    {"a tenth of the samples are outliers", [](NoiseModel& m) { m.outlier_chance = 0.1; }},
    {"cases move by 1 % from run to run", [](NoiseModel& m) { m.case_offset = 0.01; }},
    {"neighbouring samples move together by 1 %", [](NoiseModel& m) { m.slow_sigma = 0.01, m.slow_memory = 0.97; }},
};

TEST(GateSimulation, HarsherNoise) {
  constexpr double kMostAlarms = 5, kLeastFound = 50;  // percent
  const size_t count = std::max<size_t>(suites() / 4, 25);
  for (const Harsher& harsher : kHarsher) {
    NoiseModel model;
    harsher.change(model);
    const Tally quiet = without_change(model, 2, count, seed_from(400'001));
    print(fmt::format("{}: A/A, --confirm 2", harsher.name).c_str(), seed_from(400'001), quiet);
    const Tally slower = with_change(model, 1.05, 2, count, seed_from(500'001));
    fmt::print("  one case 5 % slower: found in {} of {} ({:.1f} %), exit 3 in {:.1f} %, false alarms {:.2f} %\n",
               slower.found, slower.suites, percent(slower.found, slower.suites),
               percent(slower.inconclusive, slower.suites), percent(slower.alarms, slower.suites));
    EXPECT_LE(percent(quiet.alarms, quiet.suites), kMostAlarms) << harsher.name;
    EXPECT_GE(percent(slower.found, slower.suites), kLeastFound) << harsher.name;
  }
}

// The test can fail: rules that ignore clock and significance raise many alarms on the same data.
TEST(GateSimulation, NaiveRulesWouldRaiseAlarms) {
  size_t alarms = 0;
  constexpr size_t kSuites = 20;
  for (uint64_t seed = 1; seed <= kSuites; ++seed) {
    const NoiseModel model;
    std::mt19937_64 random(seed);
    const Suite suite = make_suite(kCases, model, random);
    const ResultSet a = measure(suite, model, kNone, 1, {}, "old", random);
    const ResultSet b = measure(suite, model, kNone, 1, {}, "new", random);
    bool alarm = false;
    for (size_t i = 0; i < kCases; ++i) {
      alarm = alarm || *median(b.files[0].run.cases[i].samples_ns) > 1.03 * *median(a.files[0].run.cases[i].samples_ns);
    }
    alarms += alarm ? 1 : 0;
  }
  EXPECT_GT(alarms, kSuites / 2);
}

}  // namespace
}  // namespace cudabk::test
