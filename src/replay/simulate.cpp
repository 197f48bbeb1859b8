#include "replay/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "measure/statistics.h"
#include "ops/op_def.h"
#include "replay/text.h"
#include "tuning/table_fit.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kShortestSample = 0.5;  // of the median: noise never makes a kernel twice as fast

// Draws samples around the recorded times.
struct Dice {
  std::mt19937_64 random;
  int64_t samples = 0;
};

class RecordedBench final : public ShapeBench {
 public:
  RecordedBench(const RecordedShape& shape, Dice& dice) : shape_(shape), dice_(dice) {}
  const Problem& problem() const override { return shape_.problem; }
  Result<Candidate> default_choice() override { return shape_.fallback; }
  void preload(std::span<const Candidate>) override {}
  Result<std::string> code_hash(const Candidate& candidate) override {
    CUDABK_ASSIGN(const RecordedTiming* timing, find(candidate));
    return timing->code;
  }
  Status verify(const Candidate& candidate) override {
    const Result<const RecordedTiming*> timing = find(candidate);
    return timing.ok() ? success() : Status(timing.error());
  }
  Result<SampleFn> prepare(const Candidate& candidate) override {
    CUDABK_ASSIGN(const RecordedTiming* timing, find(candidate));
    const double ns = candidate == shape_.fallback ? default_ns(shape_)
                      : timing->paired             ? timing->ratio * default_ns(shape_)
                                                   : timing->ns;
    return SampleFn([this, ns, sigma = timing->sigma]() -> Result<double> {
      ++dice_.samples;
      std::normal_distribution<double> noise(1, sigma);
      return ns * std::max(kShortestSample, sigma > 0 ? noise(dice_.random) : 1.0);
    });
  }

 private:
  Result<const RecordedTiming*> find(const Candidate& candidate) const {
    const auto it = shape_.timings.find(candidate);
    return it == shape_.timings.end() || !(it->second.ns > 0)
               ? Result<const RecordedTiming*>(unsupported("not in the journal"))
               : Result<const RecordedTiming*>(&it->second);
  }

  const RecordedShape& shape_;
  Dice& dice_;
};

class RecordedFactory final : public ShapeBenchFactory {
 public:
  RecordedFactory(const TuneJournal& journal, const OpDef& op, uint64_t seed)
      : journal_(journal), op_(op), dice_{std::mt19937_64(seed), 0} {}
  const DeviceInfo& device() const override { return journal_.device; }
  std::span<const Family> families() const override { return op_.families(); }
  Result<std::unique_ptr<ShapeBench>> open(const std::string& key, const TuneShape& shape) override {
    const auto shapes = journal_.keys.find(key);
    if (shapes == journal_.keys.end() || !shapes->second.contains(shape)) {
      return invalid("not in the journal");
    }
    return std::unique_ptr<ShapeBench>(std::make_unique<RecordedBench>(shapes->second.at(shape), dice_));
  }
  std::string rule_code(const std::string&, const Rule&) override { return ""; }
  int64_t samples() const { return dice_.samples; }

 private:
  const TuneJournal& journal_;
  const OpDef& op_;
  Dice dice_;
};

// Time of a candidate at a shape as the tuner would compare it.
double known_ns(const RecordedShape& shape, const Candidate& candidate) {
  if (candidate == shape.fallback) {
    return default_ns(shape);
  }
  const auto it = shape.timings.find(candidate);
  if (it == shape.timings.end()) {
    return std::nan("");
  }
  return it->second.paired ? it->second.ratio * default_ns(shape) : it->second.ns;
}

double best_ns(const RecordedShape& shape) {
  double best = default_ns(shape);
  for (const auto& [candidate, timing] : shape.timings) {
    const double ns = known_ns(shape, candidate);
    best = ns > 0 && ns < best ? ns : best;
  }
  return best;
}

// What the table of this round picks at a shape: a rule is written for shapes it can run, so the first that covers it.
Candidate picked(const KeyReport& report, const RecordedShape& shape) {
  for (size_t i = 0; i < report.new_rules; ++i) {
    const Rule& rule = report.table.rules[i];
    const bool covers = std::all_of(rule.when.begin(), rule.when.end(), [&](const auto& condition) {
      return condition.second.contains(shape.problem.dim(condition.first));
    });
    if (covers) {
      return {rule.use, rule.config};
    }
  }
  return shape.fallback;
}

TuneOptions tune_options(const TuneJournal& journal, const SimulateOptions& options) {
  TuneOptions tune;
  tune.op = journal.op;
  tune.search = options.search;
  tune.confirm_rounds = options.confirm_rounds;
  tune.margin = options.margin;
  tune.regret = options.regret;
  tune.sampler.interrupted = options.interrupted;
  return tune;
}

double rank(const std::vector<double>& sorted, double q) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size()))) - 1];
}

}  // namespace

Result<Simulation> simulate_search(const TuneJournal& journal, const SimulateOptions& options) {
  CUDABK_ASSIGN(const OpDef* op, find_op(journal.op));
  Simulation result;
  result.options = options;
  std::vector<double> regrets, defaults;
  for (int round = 0; round < options.rounds; ++round) {
    RecordedFactory factory(journal, *op, options.seed + static_cast<uint64_t>(round));
    for (const auto& [key, recorded] : journal.keys) {
      TuneOptions tuning = tune_options(journal, options);
      tuning.keys = {key};
      for (const auto& [at, shape] : recorded) {
        if (shape.searched) {
          tuning.shapes.push_back(at);
        }
      }
      if (tuning.shapes.empty()) {
        continue;
      }
      Journal empty;
      CUDABK_ASSIGN(const TuneReport report, tune(factory, journal.base, empty, tuning));
      if (options.interrupted != nullptr && *options.interrupted) {
        return Error{ErrorKind::kInterrupted, "interrupted"};
      }
      result.timings += static_cast<double>(report.timings);
      result.rules += static_cast<double>(report.keys[0].new_rules);
      for (const TuneShape& at : tuning.shapes) {
        const RecordedShape& shape = recorded.at(at);
        const double ns = known_ns(shape, picked(report.keys[0], shape)), best = best_ns(shape);
        regrets.push_back(ns > 0 ? ns / best - 1 : HUGE_VAL);
        defaults.push_back(default_ns(shape) / best - 1);
      }
    }
    result.samples += static_cast<double>(factory.samples());
  }
  const double rounds = std::max(options.rounds, 1);
  result.samples /= rounds;
  result.timings /= rounds;
  result.rules /= rounds;
  result.shapes = regrets.size() / static_cast<size_t>(rounds);
  std::sort(regrets.begin(), regrets.end());
  std::sort(defaults.begin(), defaults.end());
  result.regret_median = rank(regrets, 0.5);
  result.regret_p95 = rank(regrets, 0.95);
  result.regret_max = rank(regrets, 1);
  result.default_regret_median = rank(defaults, 0.5);
  result.default_regret_max = rank(defaults, 1);
  return result;
}

std::string simulation_text(const std::vector<Simulation>& simulations) {
  std::vector<std::vector<std::string>> rows;
  for (const Simulation& s : simulations) {
    rows.push_back({std::string(strategy_name(s.options.search.strategy)), fmt::format("{}", s.options.search.top),
                    fmt::format("{:.0f}", s.samples), fmt::format("{:.0f}", s.timings), fmt::format("{:.1f}", s.rules),
                    percent(s.regret_median), percent(s.regret_p95), percent(s.regret_max)});
  }
  if (!simulations.empty()) {
    const Simulation& s = simulations.front();
    rows.push_back(
        {"defaults", "-", "0", "0", "0", percent(s.default_regret_median), "-", percent(s.default_regret_max)});
  }
  const std::string head = simulations.empty()
                               ? ""
                               : fmt::format(
                                     "{} shapes, {} rounds per strategy, seed {}; regret against "
                                     "the best that the journal knows\n\n",
                                     simulations[0].shapes, simulations[0].options.rounds, simulations[0].options.seed);
  return head +
         table_text(
             {{"strategy", false}, {"finalists"}, {"samples"}, {"timings"}, {"rules"}, {"median"}, {"p95"}, {"max"}},
             rows);
}

std::string simulation_json(const std::vector<Simulation>& simulations) {
  Json list = Json::array();
  for (const Simulation& s : simulations) {
    list.push_back({{"strategy", strategy_name(s.options.search.strategy)},
                    {"finalists", s.options.search.top},
                    {"rounds", s.options.rounds},
                    {"seed", s.options.seed},
                    {"shapes", s.shapes},
                    {"samples", s.samples},
                    {"timings", s.timings},
                    {"rules", s.rules},
                    {"regret_median", s.regret_median},
                    {"regret_p95", s.regret_p95},
                    {"regret_max", std::isfinite(s.regret_max) ? Json(s.regret_max) : Json(nullptr)},
                    {"default_regret_median", s.default_regret_median},
                    {"default_regret_max", s.default_regret_max}});
  }
  return Json({{"schema", "cudabk-replay/1"}, {"simulation", list}})
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace cudabk
