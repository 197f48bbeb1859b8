#include "replay/tune_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "backend/layouts.h"
#include "core/units.h"
#include "ops/op_def.h"
#include "tuning/device_bench.h"
#include "tuning/family_set.h"

namespace cudabk {
namespace {

using Stage = JournalEntry::Stage;

constexpr std::string_view kBegin = "{\"begin\"";

// Standard deviation of one sample, relative, from the interval of a median over `samples`: the expected range of few
// normal samples, else the half width of a 95 % interval of the median, 1.96 * 1.2533 * sigma / sqrt(samples).
double sigma_of(const JournalEntry& e) {
  constexpr double kExpectedRange[] = {1, 1, 1.128, 1.693, 2.059, 2.326};
  if (e.samples < 2 || !(e.high_ns > e.low_ns) || !(e.ns > 0)) {
    return 0;
  }
  const double range = (e.high_ns - e.low_ns) / e.ns;
  if (e.samples < 6) {
    return range / kExpectedRange[e.samples];
  }
  return range / 2 * std::sqrt(static_cast<double>(e.samples)) / (1.96 * 1.2533);
}

bool usable(const JournalEntry& e) {
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  const bool extents = !e.shape.empty() && std::all_of(e.shape.begin(), e.shape.end(), [](const auto& d) {
    return d.second > 0 && d.second < (int64_t{1} << 40);
  });
  if (e.stage == Stage::kQuarantine) {
    return extents;
  }
  return extents && positive(e.ns) && e.samples > 0 &&
         (e.stage == Stage::kScreen || (positive(e.ratio) && positive(e.ratio_low) && positive(e.ratio_high)));
}

// "mmvq rows=2 warps=4"; an empty family when the text is none of these.
Candidate parse_candidate(const std::string& text) {
  Candidate candidate;
  size_t at = text.find(' ');
  candidate.family = text.substr(0, at);
  while (at != std::string::npos) {
    const size_t end = text.find(' ', at + 1);
    const std::string word = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    const size_t equals = word.find('=');
    const Result<int64_t> value = parse_int(equals == std::string::npos ? "" : word.substr(equals + 1));
    if (!value.ok() || std::abs(*value) > INT32_MAX) {
      return {};
    }
    candidate.config[word.substr(0, equals)] = static_cast<int>(*value);
    at = end;
  }
  return candidate;
}

struct Lines {
  std::vector<JournalEntry> entries;
  size_t skipped = 0;
};

Lines read_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with(kBegin)) {
      continue;
    }
    Result<JournalEntry> entry = parse_journal_line(line);
    if (entry.ok() && usable(*entry)) {
      lines.entries.push_back(std::move(entry).value());
    } else {
      ++lines.skipped;
    }
  }
  return lines;
}

Status same_origin(const std::vector<JournalEntry>& entries, std::string_view name) {
  std::set<std::string> origins;
  for (const JournalEntry& e : entries) {
    origins.insert(fmt::format("{} ({}, {} SMs), {}", e.device, e.arch, e.sm_count, e.op));
  }
  if (origins.size() == 1) {
    return success();
  }
  std::string list;
  for (const std::string& origin : origins) {
    list += (list.empty() ? "" : "; ") + origin;
  }
  return invalid(fmt::format("{}: timings of several devices or ops in one journal: {}", name, list));
}

void add_timing(RecordedShape& shape, const JournalEntry& e) {
  RecordedTiming& timing = shape.timings[e.candidate];
  const bool confirmed = e.stage == Stage::kConfirm;
  shape.searched = shape.searched || !confirmed;
  if (timing.code != e.code) {  // another build: what was known is of no use
    timing = {};
    timing.code = e.code;
  }
  if (confirmed || !timing.paired) {
    timing.ns = e.ns;
    timing.sigma = sigma_of(e);
    timing.samples = e.samples;
  }
  timing.screen_ns = confirmed ? timing.screen_ns : e.ns;
  if (confirmed) {
    timing.paired = true;
    timing.ratio = e.ratio;
    timing.ratio_low = e.ratio_low;
    timing.ratio_high = e.ratio_high;
    shape.fallback = parse_candidate(e.against);
    shape.fallback_ns = e.ns / e.ratio;  // the same rounds gave its time
    RecordedTiming& base = shape.timings[shape.fallback];
    base.ns = base.ns > 0 ? base.ns : shape.fallback_ns;
    base.samples = std::max(base.samples, e.samples);
    base.sigma = base.sigma > 0 ? base.sigma : sigma_of(e);
  }
}

// Problem and default of a shape, or why it is of no use.
Status complete_shape(const OpDef& op, TuneJournal& journal, const std::string& key, const TuneShape& at,
                      RecordedShape& shape) {
  Graph graph;
  CUDABK_ASSIGN(const Tensor* t, op.build(graph, tune_case(key, at)));
  // Weights as they lay in that run: such that what it compared with could run.
  choose_layouts(
      graph, journal.device,
      PlanOptions{
          .profile = &journal.base, .forced_family = shape.fallback.family, .forced_config = shape.fallback.config});
  shape.problem = op.problem(*t);
  Result<Choice> choice = choose(shape.problem, journal.device, journal.base.table(shape.problem), op.families());
  const Candidate picked = choice.ok() ? Candidate{choice->family, choice->config} : Candidate{};
  if (shape.fallback.family.empty()) {
    shape.fallback = picked;
  }
  if (!shape.timings.contains(shape.fallback)) {
    return Error{ErrorKind::kNothing, fmt::format("the default {} was not timed", shape.fallback.text())};
  }
  journal.other_default += shape.fallback == picked ? 0 : 1;
  return success();
}

Result<DeviceInfo> device_of(const JournalEntry& e) {
  CUDABK_ASSIGN(DeviceInfo info, describe_architecture(e.arch));
  info.name = e.device;
  info.sm_count = e.sm_count;
  info.emulated = e.device.starts_with("emulated");
  return info;
}

}  // namespace

bool is_tune_journal(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with(kBegin) || parse_journal_line(line).ok();
}

Result<TuneJournal> read_tune_journal(std::string_view text, std::string_view name, const std::string& profile) {
  const Lines lines = read_lines(text);
  if (lines.entries.empty()) {
    return invalid(fmt::format("{}: no timing in this journal ({} lines that are none)", name, lines.skipped));
  }
  CUDABK_TRY(same_origin(lines.entries, name));
  TuneJournal journal;
  journal.skipped_lines = lines.skipped;
  journal.op = lines.entries[0].op;
  CUDABK_ASSIGN(const OpDef* op, find_op(journal.op));
  CUDABK_ASSIGN(journal.device, device_of(lines.entries[0]));
  CUDABK_ASSIGN(const Profile found, find_profile(journal.device, profile, "", family_set()));
  journal.base = without_tuned_rules(found);
  journal.base.device = {journal.device.name, journal.device.arch, journal.device.sm_count, journal.device.l2_bytes};
  for (const JournalEntry& e : lines.entries) {
    if (e.stage == Stage::kQuarantine) {
      journal.quarantined[e.key].push_back(e.candidate);
      continue;
    }
    add_timing(journal.keys[e.key][e.shape], e);
    ++journal.entries;
  }
  size_t kept = 0;
  for (auto& [key, shapes] : journal.keys) {
    for (auto it = shapes.begin(); it != shapes.end();) {
      const Status usable = complete_shape(*op, journal, key, it->first, it->second);
      if (!usable.ok()) {
        journal.skipped.push_back(fmt::format("{} {}: {}", key, shape_label(it->first), usable.error().message));
        it = shapes.erase(it);
      } else {
        ++kept;
        ++it;
      }
    }
  }
  std::erase_if(journal.keys, [](const auto& entry) { return entry.second.empty(); });
  if (kept == 0) {
    return Error{ErrorKind::kNothing,
                 fmt::format("{}: no shape with a time of the default: {}", name, journal.skipped[0])};
  }
  return journal;
}

double default_ns(const RecordedShape& shape) {
  return shape.fallback_ns > 0 ? shape.fallback_ns : shape.timings.at(shape.fallback).ns;
}

std::vector<PointResult> recorded_points(const std::map<TuneShape, RecordedShape>& shapes, double margin) {
  std::vector<PointResult> points;
  for (const auto& [at, shape] : shapes) {
    PointResult point;
    point.shape = at;
    point.problem = shape.problem;
    point.default_choice = shape.fallback;
    point.default_ns = default_ns(shape);
    const double screened = shape.timings.at(shape.fallback).screen_ns;
    for (const auto& [candidate, timing] : shape.timings) {
      if (candidate == shape.fallback) {
        continue;
      }
      PointResult::Entry entry;
      entry.candidate = candidate;
      entry.paired = timing.paired;
      const double alone =
          screened > 0 && timing.screen_ns > 0 ? timing.screen_ns / screened : timing.ns / point.default_ns;
      entry.ratio = timing.paired ? timing.ratio : alone;
      entry.ratio_low = timing.paired ? timing.ratio_low : entry.ratio;
      entry.ratio_high = timing.paired ? timing.ratio_high : entry.ratio;
      entry.ns = entry.ratio * point.default_ns;
      entry.faster = timing.paired && timing.ratio_high < 1 - margin;
      entry.slower = timing.paired && timing.ratio_low > 1 + margin;
      point.samples = timing.paired ? std::max(point.samples, timing.samples) : point.samples;
      point.entries.push_back(std::move(entry));
    }
    std::stable_sort(point.entries.begin(), point.entries.end(),
                     [](const auto& a, const auto& b) { return a.ns < b.ns; });
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace cudabk
