#include "measure/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "core/units.h"

namespace cudabk {
namespace {

constexpr size_t kWarmupWindow = 5;        // samples in a window, at least
constexpr double kWarmupWindowS = 0.004;   // and its shortest length: clocks ramp over milliseconds
constexpr double kWarmupAgreement = 0.01;  // of three window medians; precision when that is wider
constexpr double kWarmupShare = 0.3;       // of the time limit
constexpr double kClockAgreement = 0.01;   // of two consecutive readings while warming up
constexpr double kClockChange = 0.03;      // between batches: two clock levels
constexpr double kDriftBound = 0.02;
constexpr int64_t kMaxBatch = 200;

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double relative_spread(double a, double b) { return std::fabs(a - b) / std::max(std::max(a, b), 1e-300); }

// One measurement in progress.
class Sampler {
 public:
  Sampler(const SampleFn& sample, const SamplerOptions& options) : sample_(sample), options_(options) {
    start_s_ = now();
  }

  Result<Measurement> run() {
    CUDABK_TRY(warm_up());
    while (!done_) {
      CUDABK_TRY(take_batch());
      if (!done_) {
        check_stop();
      }
    }
    return finish();
  }

 private:
  double now() const { return options_.now_s ? options_.now_s() : steady_now_s(); }
  double elapsed() const { return now() - start_s_; }
  bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }

  void pause(double seconds) const {
    if (options_.sleep_s) {
      options_.sleep_s(seconds);
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
  }

  void stop(StopRule rule) {
    measurement_.stop = rule;
    done_ = true;
  }

  // A sample and what it cost in wall time. Invalid values are counted and come back as NaN, as does one that was
  // interrupted, which ends the measurement.
  Result<double> take_sample() {
    const double before = now();
    Result<double> taken = sample_();
    if (!taken.ok() && taken.error().kind == ErrorKind::kInterrupted) {  // in its midst: what there is, is kept
      stop(StopRule::kInterrupted);
      return std::nan("");
    }
    CUDABK_ASSIGN(const double value, std::move(taken));
    const double cost = now() - before;
    sample_cost_s_ = sample_cost_s_ == 0 ? cost : 0.7 * sample_cost_s_ + 0.3 * cost;
    if (!std::isfinite(value) || value <= 0) {
      ++measurement_.invalid_samples;
      return std::nan("");
    }
    return value;
  }

  Result<double> read_clock() const {
    if (!options_.read_clock_mhz) {
      return 0.0;
    }
    return options_.read_clock_mhz();
  }

  Status warm_up();
  Result<bool> auto_window(std::vector<double>& medians, double& clock, double limit_s);
  Status take_batch();
  Status judge_batch(Batch batch, const std::vector<double>& values);
  bool is_throttled(const Batch& batch) const;
  void keep(Batch batch, const std::vector<double>& values, Measurement& into) const;
  void check_stop();
  Result<Measurement> finish();
  void judge_clocks();

  const SampleFn& sample_;
  const SamplerOptions& options_;
  Measurement measurement_;
  Measurement rejected_;  // throttled batches that were retried, for the case that nothing better comes
  double start_s_ = 0;
  double sampling_start_s_ = 0;
  double sample_cost_s_ = 0;
  double last_clock_ = 0;  // reading at the end of the batch before, 0 after a pause
  double highest_clock_ = 0;
  size_t checked_at_ = 0;  // samples when the interval was last computed
  bool done_ = false;
};

Status Sampler::warm_up() {
  const Warmup& rule = options_.warmup;
  const double limit_s = std::min(options_.warmup_limit_s, kWarmupShare * options_.max_time_s);
  std::vector<double> medians;
  double clock = 0;
  while (!interrupted() && !done_) {
    if (rule.rule == Warmup::Rule::kCount && measurement_.warmup_samples >= rule.count) {
      break;
    }
    if (rule.rule == Warmup::Rule::kSeconds && elapsed() >= rule.seconds) {
      break;
    }
    if (rule.rule != Warmup::Rule::kAuto) {
      if (elapsed() + sample_cost_s_ > options_.max_time_s) {
        measurement_.warmup_settled = false;
        break;
      }
      CUDABK_ASSIGN([[maybe_unused]] const double ignored, take_sample());
      ++measurement_.warmup_samples;
      continue;
    }
    CUDABK_ASSIGN(const bool settled, auto_window(medians, clock, limit_s));
    if (settled) {
      break;
    }
    if (elapsed() + sample_cost_s_ > limit_s) {
      measurement_.warmup_settled = false;
      break;
    }
  }
  measurement_.warmup_s = elapsed();
  measurement_.invalid_samples = 0;
  sampling_start_s_ = now();
  return success();
}

// One window of warm-up samples; true when the last three medians agree and the clock stands still.
Result<bool> Sampler::auto_window(std::vector<double>& medians, double& clock, double limit_s) {
  std::vector<double> values;
  const double begin = now();
  while ((values.size() < kWarmupWindow || now() - begin < kWarmupWindowS) && !interrupted() && !done_) {
    CUDABK_ASSIGN(const double value, take_sample());
    ++measurement_.warmup_samples;
    values.push_back(std::isnan(value) ? 0.0 : value);
    if (elapsed() + sample_cost_s_ > limit_s) {
      break;
    }
  }
  if (values.size() < kWarmupWindow) {
    return false;
  }
  medians.push_back(*median(values));
  CUDABK_ASSIGN(const double clock_now, read_clock());
  const bool clock_settled = relative_spread(clock, clock_now) <= kClockAgreement;
  clock = clock_now;
  if (medians.size() < 3 || (options_.read_clock_mhz && !clock_settled)) {
    return false;
  }
  const auto [low, high] = std::minmax_element(medians.end() - 3, medians.end());
  return relative_spread(*low, *high) <= std::max(kWarmupAgreement, options_.precision);
}

Status Sampler::take_batch() {
  Batch batch;
  if (last_clock_ > 0) {
    batch.clock_before_mhz = last_clock_;
  } else {
    CUDABK_ASSIGN(batch.clock_before_mhz, read_clock());
  }
  const auto taken = static_cast<int64_t>(measurement_.samples.size()) + measurement_.invalid_samples;
  int64_t count = sample_cost_s_ > 0 ? std::llround(options_.batch_s / sample_cost_s_) : 1;
  count = std::clamp<int64_t>(count, 1, kMaxBatch);
  count = std::min(count, std::max<int64_t>(1, options_.max_samples - taken));
  std::vector<double> values;
  for (int64_t i = 0; i < count && !done_; ++i) {
    if (interrupted()) {
      stop(StopRule::kInterrupted);
      break;
    }
    CUDABK_ASSIGN(const double value, take_sample());
    if (!std::isnan(value)) {
      values.push_back(value);
    }
    if (elapsed() + sample_cost_s_ > options_.max_time_s) {
      stop(StopRule::kMaxTime);
    }
  }
  CUDABK_ASSIGN(batch.clock_after_mhz, read_clock());
  last_clock_ = batch.clock_after_mhz;
  highest_clock_ = std::max({highest_clock_, batch.clock_before_mhz, batch.clock_after_mhz});
  return judge_batch(batch, values);
}

bool Sampler::is_throttled(const Batch& batch) const {
  if (!options_.read_clock_mhz) {
    return false;
  }
  const double reference = options_.reference_clock_mhz > 0 ? options_.reference_clock_mhz : highest_clock_;
  return std::min(batch.clock_before_mhz, batch.clock_after_mhz) < options_.throttle_threshold * reference;
}

Status Sampler::judge_batch(Batch batch, const std::vector<double>& values) {
  batch.throttled = is_throttled(batch);
  if (!batch.throttled || options_.on_throttle == ThrottleAction::kMark) {
    keep(batch, values, measurement_);
    return success();
  }
  const double clock = std::min(batch.clock_before_mhz, batch.clock_after_mhz);
  if (options_.on_throttle == ThrottleAction::kFail) {
    const double reference = options_.reference_clock_mhz > 0 ? options_.reference_clock_mhz : highest_clock_;
    return Error{ErrorKind::kInconclusive, fmt::format("the SM clock fell to {:.0f} MHz, below {:.0f} % of {:.0f} MHz",
                                                       clock, 100 * options_.throttle_threshold, reference)};
  }
  if (measurement_.retries >= options_.max_retries || done_) {  // retries are bounded; what there is, is marked
    keep(batch, values, measurement_);
    return success();
  }
  keep(batch, values, rejected_);
  const double wait = options_.retry_pause_s * std::pow(2.0, static_cast<double>(measurement_.retries));
  ++measurement_.retries;
  const double left = options_.max_time_s - elapsed() - sample_cost_s_;
  if (left <= 0) {
    stop(StopRule::kMaxTime);
    return success();
  }
  pause(std::min(wait, left));
  last_clock_ = 0;
  return success();
}

void Sampler::keep(Batch batch, const std::vector<double>& values, Measurement& into) const {
  if (values.empty()) {
    return;
  }
  batch.first = static_cast<int64_t>(into.samples.size());
  batch.count = static_cast<int64_t>(values.size());
  into.samples.insert(into.samples.end(), values.begin(), values.end());
  into.batches.push_back(batch);
}

void Sampler::check_stop() {
  if (interrupted()) {
    stop(StopRule::kInterrupted);
    return;
  }
  const auto n = static_cast<int64_t>(measurement_.samples.size());
  if (n + measurement_.invalid_samples >= options_.max_samples) {
    stop(StopRule::kMaxSamples);
    return;
  }
  if (elapsed() + sample_cost_s_ > options_.max_time_s) {
    stop(StopRule::kMaxTime);
    return;
  }
  if (n < options_.min_samples || now() - sampling_start_s_ < options_.min_time_s) {
    return;
  }
  if (checked_at_ > 0 && measurement_.samples.size() < checked_at_ + checked_at_ / 20) {
    return;  // sorting again for a few more samples would cost more than they do
  }
  checked_at_ = measurement_.samples.size();
  const MedianInterval interval = *median_interval(measurement_.samples, options_.confidence);
  const double center = *median(measurement_.samples);
  if (interval.attained && (interval.high - interval.low) / 2 <= options_.precision * center) {
    stop(StopRule::kPrecision);
  }
}

void Sampler::judge_clocks() {
  Measurement& m = measurement_;
  std::vector<double> clocks;
  std::vector<double> cycles;
  for (const Batch& batch : m.batches) {
    m.throttled = m.throttled || batch.throttled;
    const double clock = (batch.clock_before_mhz + batch.clock_after_mhz) / 2;
    if (clock <= 0) {
      continue;
    }
    clocks.push_back(clock);
    for (int64_t i = batch.first; i < batch.first + batch.count; ++i) {
      cycles.push_back(m.samples[static_cast<size_t>(i)] * clock / 1000);
    }
  }
  if (clocks.empty()) {
    return;
  }
  const auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
  m.clock_changed = relative_spread(*low, *high) > kClockChange;
  m.clock_mhz = *median(clocks);
  m.median_cycles = *median(cycles);
}

Result<Measurement> Sampler::finish() {
  Measurement& m = measurement_;
  if (m.samples.empty()) {  // every batch was throttled: never an empty row, but a marked one
    m.samples = std::move(rejected_.samples);
    m.batches = std::move(rejected_.batches);
  }
  if (m.samples.empty()) {
    if (m.stop == StopRule::kInterrupted) {
      return Error{ErrorKind::kInterrupted, "interrupted before the first sample"};
    }
    return Error{ErrorKind::kInconclusive,
                 fmt::format("no valid samples ({} were not positive numbers)", m.invalid_samples)};
  }
  m.summary = *summarize(m.samples, options_.confidence, std::max(kDriftBound, options_.precision));
  m.too_few = static_cast<int64_t>(m.samples.size()) < options_.min_samples || !m.summary.noise_percent;
  m.imprecise = !m.summary.interval.attained || m.summary.half_width.value_or(INFINITY) > options_.precision;
  judge_clocks();
  m.total_s = elapsed();
  return std::move(m);
}

}  // namespace

Result<Warmup> parse_warmup(std::string_view text) {
  Warmup warmup;
  if (text == "auto") {
    return warmup;
  }
  if (auto count = parse_int(text); count.ok() && *count >= 0) {
    warmup.rule = Warmup::Rule::kCount;
    warmup.count = *count;
    return warmup;
  }
  auto seconds = parse_duration_s(text);
  if (!seconds.ok() || *seconds < 0) {
    return invalid(fmt::format("warm-up \"{}\": expected auto, a number of samples, or a time such as 0.5s", text));
  }
  warmup.rule = Warmup::Rule::kSeconds;
  warmup.seconds = *seconds;
  return warmup;
}

Result<ThrottleAction> parse_throttle_action(std::string_view text) {
  if (text == "retry") {
    return ThrottleAction::kRetry;
  }
  if (text == "mark") {
    return ThrottleAction::kMark;
  }
  if (text == "fail") {
    return ThrottleAction::kFail;
  }
  return invalid(fmt::format("throttle action \"{}\": expected retry, mark or fail", text));
}

Result<double> parse_fraction(std::string_view text, double limit) {
  const bool percent = !text.empty() && text.back() == '%';
  const auto value = parse_double(percent ? text.substr(0, text.size() - 1) : text);
  if (value.ok()) {
    if (!percent && *value > 1 && limit > 1) {
      return invalid(fmt::format("\"{0}\": write {0}% for that many percent", text));
    }
    const double fraction = percent ? *value / 100 : *value;
    if (fraction > 0 && fraction <= limit) {
      return fraction;
    }
  }
  return invalid(
      fmt::format("\"{}\": expected a share above 0 and at most {:g} %, such as 1% or 0.01", text, 100 * limit));
}

std::string_view stop_rule_name(StopRule rule) {
  switch (rule) {
    case StopRule::kPrecision:
      return "precision";
    case StopRule::kMaxSamples:
      return "max_samples";
    case StopRule::kMaxTime:
      return "max_time";
    case StopRule::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

Result<Measurement> measure_samples(const SampleFn& sample, const SamplerOptions& options) {
  return Sampler(sample, options).run();
}

Result<Interleaved> sample_interleaved(std::span<const SampleFn> candidates, int64_t rounds,
                                       const SamplerOptions& options, uint64_t seed) {
  const auto now = [&options] { return options.now_s ? options.now_s() : steady_now_s(); };
  const double start = now();
  Interleaved result;
  result.samples.resize(candidates.size());
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  for (int64_t round = -1; round < rounds; ++round) {  // round -1 is the untimed visit
    std::shuffle(order.begin(), order.end(), random);
    std::vector<double> row(candidates.size(), 0.0);
    for (size_t candidate : order) {
      if (options.interrupted != nullptr && options.interrupted->load()) {
        result.stop = StopRule::kInterrupted;
        return result;
      }
      Result<double> sample = candidates[candidate]();
      if (!sample.ok() && sample.error().kind == ErrorKind::kInterrupted) {
        result.stop = StopRule::kInterrupted;
        return result;
      }
      CUDABK_ASSIGN(row[candidate], std::move(sample));
      if (!std::isfinite(row[candidate]) || row[candidate] <= 0) {
        return Error{ErrorKind::kInconclusive,
                     fmt::format("candidate {}: a sample of {} ns", candidate, row[candidate])};
      }
    }
    if (round < 0) {
      continue;
    }
    for (size_t i = 0; i < row.size(); ++i) {
      result.samples[i].push_back(row[i]);
    }
    result.rounds = round + 1;
    const double per_round = (now() - start) / static_cast<double>(round + 2);
    if (result.rounds < rounds && now() - start + per_round > options.max_time_s) {
      result.stop = StopRule::kMaxTime;
      return result;
    }
  }
  return result;
}

}  // namespace cudabk
