#include "tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "tuning/key_tuner.h"

namespace cudabk {
namespace {

// Time for pairing the finalists of one shape, whatever the device.
constexpr double kConfirmLimitS = 20;

// Progress and the time left, from the pace so far.
class Pace {
 public:
  Pace(const PointMeasurer& measurer, const TuneOptions& options)
      : measurer_(measurer), options_(options), start_s_(measurer.now_s()) {}

  void step(const std::string& key, const TuneShape& shape, size_t left_in_key, size_t keys_left) {
    if (options_.progress) {
      std::string left = "";
      const double spent = measurer_.now_s() - start_s_;
      if (done_ > 0) {
        const double shapes_left = static_cast<double>(left_in_key + keys_left * options_.shapes.size());
        double seconds = spent / static_cast<double>(done_) * shapes_left;
        if (options_.budget_s > 0) {
          seconds = std::min(seconds, std::max(0.0, options_.budget_s - spent));
        }
        left = fmt::format(", about {} left", format_time_ns(seconds * 1e9));
      }
      options_.progress(fmt::format("tune {} {} {}: shape {}, {} timings ({} from the journal){}", options_.op, key,
                                    shape_label(shape), done_ + 1, measurer_.timings() + measurer_.reused(),
                                    measurer_.reused(), left));
    }
    ++done_;
  }

 private:
  const PointMeasurer& measurer_;
  const TuneOptions& options_;
  double start_s_;
  size_t done_ = 0;
};

std::string key_evidence(const KeyReport& r, const TuneOptions& options) {
  const double percent = 100;
  return fmt::format(
      "{{\"shapes\": {}, \"unseen_shapes\": {}, \"rules\": {}, \"regret_median_percent\": {:.2f}, "
      "\"regret_p95_percent\": {:.2f}, \"regret_max_percent\": {:.2f}, \"default_regret_median_percent\": {:.2f}, "
      "\"default_regret_max_percent\": {:.2f}, \"margin_percent\": {:.2f}, \"regret_bound_percent\": {:.2f}}}",
      r.points.size(), r.checked, r.new_rules, r.fit.regret_median * percent, r.fit.regret_p95 * percent,
      r.fit.regret_max * percent, r.fit.default_regret_median * percent, r.fit.default_regret_max * percent,
      options.margin * percent, options.regret * percent);
}

// Regret over the points of all keys: what a user of the whole profile sees.
void add_evidence(TuneReport& report, const TuneOptions& options) {
  double median = 0, p95 = 0;
  for (const KeyReport& r : report.keys) {
    if (r.points.empty()) {
      continue;
    }
    median = std::max(median, r.fit.regret_median);
    p95 = std::max(p95, r.fit.regret_p95);
    report.profile.evidence[fmt::format("{} {}", options.op, r.key)] = key_evidence(r, options);
  }
  report.profile.evidence["regret_median_percent"] = fmt::format("{:.2f}", 100 * median);
  report.profile.evidence["regret_p95_percent"] = fmt::format("{:.2f}", 100 * p95);
  report.profile.evidence["measurements"] = fmt::format(
      "{} timings ({} of an earlier run), strategy {}, {} finalists in {} paired rounds; outside the "
      "intervals of the rules the defaults stay",
      report.timings + report.reused, report.reused, strategy_name(options.search.strategy), options.search.top,
      options.confirm_rounds);
  report.profile.evidence.erase("origin");
  report.changes.evidence = report.profile.evidence;
}

void take_over(TuneReport& report, KeyTuner& tuner, const std::string& op) {
  KeyReport& key = tuner.report();
  if (!key.points.empty() && !key.table.rules.empty() && key.table.rules.back().when.empty()) {
    report.profile.tables[op][key.key] = key.table;
    report.changes.tables[op][key.key] = key.table;
  }
  report.skipped.insert(report.skipped.end(), tuner.skipped().begin(), tuner.skipped().end());
  report.keys.push_back(std::move(key));
}

}  // namespace

Profile without_tuned_rules(const Profile& base) {
  Profile plain = base;
  for (auto& [op, by_key] : plain.tables) {
    for (auto& [key, table] : by_key) {
      std::erase_if(table.rules, [](const Rule& r) { return !r.code.empty() || !r.evidence.empty(); });
    }
    std::erase_if(by_key, [](const auto& entry) { return entry.second.rules.empty(); });
  }
  return plain;
}

Result<TuneReport> tune(ShapeBenchFactory& factory, const Profile& base, Journal& journal, const TuneOptions& given) {
  TuneOptions options = given;
  options.sampler.max_time_s = kConfirmLimitS;
  PointMeasurer measurer(factory, journal, options);
  const double start = measurer.now_s();
  const DeviceInfo& device = factory.device();

  TuneReport report;
  report.profile = without_tuned_rules(base);
  report.profile.device = {device.name, device.arch, device.sm_count, device.l2_bytes};
  report.changes.device = report.profile.device;
  const Profile plain = report.profile;
  Pace pace(measurer, options);
  for (size_t i = 0; i < options.keys.size(); ++i) {
    const size_t keys_left = options.keys.size() - i;
    if (options.budget_s > 0) {  // each key gets its share of what is left
      const double left = options.budget_s - (measurer.now_s() - start);
      measurer.set_deadline(measurer.now_s() + left / static_cast<double>(keys_left));
    }
    if (const auto layout = plain.layouts.find(options.keys[i]); layout != plain.layouts.end()) {
      report.changes.layouts.insert(*layout);  // the rules are of this layout
    }
    const Table& table = plain.table({options.op, options.keys[i], {}});
    const auto step = [&](const TuneShape& shape, size_t left) {
      pace.step(options.keys[i], shape, left, keys_left - 1);
    };
    KeyTuner tuner(measurer, factory, table, options, options.keys[i], step);
    CUDABK_ASSIGN(const bool complete, tuner.run());
    report.complete = report.complete && complete;
    take_over(report, tuner, options.op);
    if (options.sampler.interrupted != nullptr && *options.sampler.interrupted) {
      break;
    }
  }
  report.timings = measurer.timings();
  report.reused = measurer.reused();
  report.quarantined = measurer.quarantined();
  const bool any =
      std::any_of(report.keys.begin(), report.keys.end(), [](const KeyReport& r) { return !r.points.empty(); });
  if (!any) {
    if (options.sampler.interrupted != nullptr && *options.sampler.interrupted) {
      return Error{ErrorKind::kInterrupted,
                   "interrupted before the first shape was done; the journal keeps its timings"};
    }
    const std::string why = !report.skipped.empty() ? report.skipped[0]
                            : report.complete       ? std::string("no shapes or no types")
                                                    : std::string("the time ran out before the first shape was done");
    return Error{ErrorKind::kNothing, "nothing was measured: " + why};
  }
  add_evidence(report, options);
  return report;
}

}  // namespace cudabk
