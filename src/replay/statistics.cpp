#include "replay/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "core/units.h"
#include "replay/text.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFewSamples = "few samples", kImprecise = "imprecise";

// The first count at which the precision is reached. The interval narrows with the root of the count, so a step of 5 %
// loses nothing that matters.
std::optional<size_t> enough_samples(std::span<const double> samples, const ReplayStatistics& options) {
  for (size_t count = std::max<size_t>(options.min_samples, 1); count <= samples.size();
       count += std::max<size_t>(1, count / 20)) {
    const std::optional<Summary> s = summarize(samples.first(count), options.confidence);
    if (s && s->interval.attained && s->half_width.value_or(INFINITY) <= options.precision) {
      return count;
    }
  }
  return std::nullopt;
}

void set_flag(std::vector<std::string>& flags, std::string_view flag, bool wanted) {
  std::erase(flags, flag);
  if (wanted) {
    flags.emplace_back(flag);
  }
}

Json summary_json(const std::optional<Summary>& s) {
  if (!s) {
    return nullptr;
  }
  return {{"count", s->count},
          {"median_ns", s->median},
          {"interval_ns", {s->interval.low, s->interval.high}},
          {"half_width", s->half_width ? Json(*s->half_width) : Json(nullptr)},
          {"outliers", s->outliers},
          {"drift_detected", s->drift.detected}};
}

std::string spread(const std::optional<Summary>& s) {
  return s && s->half_width ? fmt::format("{:.2f} %", 100 * *s->half_width) : "-";
}

}  // namespace

RunResult replay_statistics(const RunResult& run, const ReplayStatistics& options, std::vector<ReplayedCase>* cases) {
  RunResult result = run;
  for (CaseResult& c : result.cases) {
    if (c.samples_ns.empty()) {
      continue;
    }
    ReplayedCase entry{c.key, c.repetition, c.summary, {}, {}};
    if (options.first > 0 && c.samples_ns.size() > options.first) {
      c.samples_ns.resize(options.first);
    }
    c.summary = summarize(c.samples_ns, options.confidence);
    const bool wide =
        !c.summary || !c.summary->interval.attained || c.summary->half_width.value_or(INFINITY) > options.precision;
    set_flag(c.flags, kFewSamples, c.samples_ns.size() < std::max(options.min_samples, kMinSamplesForNoise));
    set_flag(c.flags, kImprecise, wide);
    entry.replayed = c.summary;
    entry.enough = enough_samples(c.samples_ns, options);
    if (cases != nullptr) {
      cases->push_back(std::move(entry));
    }
  }
  return result;
}

std::string statistics_text(const std::vector<ReplayedCase>& cases, const ReplayStatistics& options) {
  std::vector<Column> columns = {{"case", false}, {"samples", true}, {"time", true},   {"recorded", true},
                                 {"±", true},     {"was ±", true},   {"enough", true}, {"remarks", false}};
  std::vector<std::vector<std::string>> rows;
  for (const ReplayedCase& c : cases) {
    const std::optional<Summary>& s = c.replayed;
    std::string remarks;
    if (s && s->drift.detected) {
      remarks += fmt::format("drift {:+.1f} %  ", s->drift.percent);
    }
    if (s && s->outliers > 0) {
      remarks += fmt::format("{} outliers", s->outliers);
    }
    rows.push_back({c.repetition == 0 ? c.key : fmt::format("{} (repetition {})", c.key, c.repetition + 1),
                    s ? fmt::format("{}", s->count) : "0", s ? format_time_ns(s->median) : "-",
                    c.recorded ? format_time_ns(c.recorded->median) : "-", spread(s), spread(c.recorded),
                    c.enough ? fmt::format("{}", *c.enough) : "-", remarks});
  }
  return fmt::format("confidence {:g}, wanted ± {:g} %; 'enough': samples after which that was first reached\n\n{}",
                     options.confidence, 100 * options.precision, table_text(columns, rows));
}

std::string statistics_json(const std::vector<ReplayedCase>& cases, const ReplayStatistics& options) {
  Json json = {{"schema", "cudabk-replay/1"},
               {"statistics",
                {{"confidence", options.confidence},
                 {"precision", options.precision},
                 {"min_samples", options.min_samples},
                 {"first", options.first},
                 {"cases", Json::array()}}}};
  for (const ReplayedCase& c : cases) {
    json["statistics"]["cases"].push_back({{"key", c.key},
                                           {"repetition", c.repetition},
                                           {"recorded", summary_json(c.recorded)},
                                           {"replayed", summary_json(c.replayed)},
                                           {"enough", c.enough ? Json(*c.enough) : Json(nullptr)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cudabk
