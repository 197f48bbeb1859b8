#include "measure/trace_assembly.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "measure/statistics.h"

namespace cudabk {
namespace {

constexpr double kInvalidLimitPercent = 1;  // more than this marks the case

struct Placed {
  std::vector<ReplayTrace> replays;
  int64_t unmatched = 0;
};

// Eager: the external id says it all.
Placed place_eager(TraceInput& input) {
  Placed placed;
  placed.replays.resize(static_cast<size_t>(input.replays));
  for (ReplayTrace& replay : placed.replays) {
    replay.launches.resize(input.launches);
  }
  for (RawActivity& activity : input.activities) {
    const auto found = input.external.find(activity.correlation);
    const ExternalId id = found != input.external.end() ? ExternalId::unpack(found->second) : ExternalId{};
    if (id.session != input.session || id.replay >= placed.replays.size() || id.launch >= input.launches) {
      ++placed.unmatched;
      continue;
    }
    placed.replays[id.replay].launches[id.launch].kernels.push_back(std::move(activity.record));
  }
  const int64_t uncounted = std::clamp<int64_t>(input.uncounted, 0, input.replays);
  placed.replays.erase(placed.replays.begin(), placed.replays.begin() + uncounted);
  return placed;
}

// Graphs: one correlation id per replay, one node id per kernel.
Placed place_graph(TraceInput& input) {
  Placed placed;
  std::map<uint32_t, ReplayTrace> groups;  // ids of calls grow with time
  for (RawActivity& activity : input.activities) {
    const auto launch = activity.graph_node != 0 ? input.launch_of_node(activity.graph_node) : std::nullopt;
    if (!launch.has_value() || *launch >= input.launches) {
      ++placed.unmatched;
      continue;
    }
    ReplayTrace& replay = groups[activity.correlation];
    replay.launches.resize(input.launches);
    replay.launches[*launch].kernels.push_back(std::move(activity.record));
  }
  // What is older than the counted replays of this session is one of its uncounted ones, or left over from before. An
  // uncounted one never stands in for a counted one without any record.
  auto group = groups.begin();
  const auto replays = static_cast<size_t>(std::max<int64_t>(0, input.replays));
  const auto counted = static_cast<size_t>(std::max<int64_t>(0, input.replays - input.uncounted));
  const size_t absent = std::min(counted, replays - std::min(replays, groups.size()));
  for (size_t left = groups.size(); left > counted - absent; --left) {
    ++group;
  }
  for (; group != groups.end(); ++group) {
    placed.replays.push_back(std::move(group->second));
  }
  while (placed.replays.size() < counted) {  // a replay without any record
    placed.replays.emplace_back().launches.resize(input.launches);
  }
  return placed;
}

void count_records(std::vector<ReplayTrace>& replays, const std::vector<int64_t>& expected_per_launch) {
  std::vector<int64_t> expected = expected_per_launch;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] >= 0) {
      continue;
    }
    expected[i] = 1;
    for (const ReplayTrace& replay : replays) {
      expected[i] = std::max(expected[i], static_cast<int64_t>(replay.launches[i].kernels.size()));
    }
  }
  for (ReplayTrace& replay : replays) {
    for (size_t i = 0; i < replay.launches.size(); ++i) {
      replay.expected += i < expected.size() ? expected[i] : 0;
      replay.delivered += static_cast<int64_t>(replay.launches[i].kernels.size());
      for (const KernelRecord& kernel : replay.launches[i].kernels) {
        replay.zero += kernel.timed() ? 0 : 1;
      }
    }
  }
}

// Fills times of a replay whose records are complete.
void compute_times(ReplayTrace& replay) {
  std::vector<std::pair<uint64_t, uint64_t>> intervals;
  uint64_t end_before = 0;
  for (LaunchTrace& launch : replay.launches) {
    std::sort(launch.kernels.begin(), launch.kernels.end(),
              [](const KernelRecord& a, const KernelRecord& b) { return a.start_ns < b.start_ns; });
    for (const KernelRecord& kernel : launch.kernels) {
      launch.busy_ns += kernel.duration_ns();
      intervals.emplace_back(kernel.start_ns, kernel.end_ns);
    }
    if (!launch.kernels.empty() && end_before != 0) {
      launch.gap_before_ns = static_cast<double>(launch.kernels.front().start_ns) - static_cast<double>(end_before);
    }
    for (const KernelRecord& kernel : launch.kernels) {
      end_before = std::max(end_before, kernel.end_ns);
    }
  }
  if (intervals.empty()) {
    return;
  }
  std::sort(intervals.begin(), intervals.end());
  uint64_t covered_to = intervals.front().first;
  for (const auto& [start, end] : intervals) {
    if (start > covered_to) {
      replay.gap_ns += static_cast<double>(start - covered_to);
    }
    covered_to = std::max(covered_to, end);
  }
  replay.span_ns = static_cast<double>(covered_to - intervals.front().first);
}

void summarize_launches(TraceReport& report, size_t launches) {
  std::vector<double> spans;
  std::vector<double> busy;
  std::vector<double> gaps;
  std::vector<std::vector<double>> launch_busy(launches);
  std::vector<std::vector<double>> launch_gaps(launches);
  const ReplayTrace* example = nullptr;
  for (const ReplayTrace& replay : report.replays) {
    if (!replay.valid()) {
      continue;
    }
    example = &replay;
    spans.push_back(replay.span_ns);
    gaps.push_back(replay.gap_ns);
    double sum = 0;
    for (size_t i = 0; i < launches; ++i) {
      launch_busy[i].push_back(replay.launches[i].busy_ns);
      launch_gaps[i].push_back(replay.launches[i].gap_before_ns);
      sum += replay.launches[i].busy_ns;
    }
    busy.push_back(sum);
  }
  report.median_span_ns = median(spans);
  report.median_busy_ns = median(busy);
  report.median_gap_ns = median(gaps);
  if (example == nullptr) {
    return;
  }
  for (size_t i = 0; i < launches; ++i) {
    report.launches.push_back({*median(launch_busy[i]), *median(launch_gaps[i]), example->launches[i].kernels});
  }
}

// Everything that follows from the replays and the counts.
void finish_report(TraceReport& report, size_t launches) {
  if (report.expected > 0) {
    report.invalid_percent =
        100 * static_cast<double>(report.lost + report.zero) / static_cast<double>(report.expected);
  }
  report.flagged = report.expected == 0 || report.delivered == 0 || report.delivered > report.expected ||
                   report.invalid_percent > kInvalidLimitPercent;
  summarize_launches(report, launches);
}

}  // namespace

ExternalId ExternalId::unpack(uint64_t id) {
  constexpr uint64_t kMask = (1U << 24) - 1;
  return {static_cast<uint32_t>(id >> 48), static_cast<uint32_t>(id >> 24 & kMask), static_cast<uint32_t>(id & kMask)};
}

TraceReport assemble_trace(TraceInput input) {
  Placed placed = input.graph ? place_graph(input) : place_eager(input);
  TraceReport report;
  report.replays = std::move(placed.replays);
  report.unmatched = std::max<int64_t>(0, placed.unmatched - input.others);
  report.dropped = input.dropped;
  input.expected.resize(input.launches, -1);
  count_records(report.replays, input.expected);
  for (ReplayTrace& replay : report.replays) {
    report.expected += replay.expected;
    report.delivered += replay.delivered;
    report.zero += replay.zero;
    report.lost += std::max<int64_t>(0, replay.expected - replay.delivered);
    if (replay.valid()) {
      compute_times(replay);
    }
  }
  finish_report(report, input.launches);
  return report;
}

TraceReport merge_traces(std::vector<TraceReport> parts, size_t launches) {
  TraceReport report;
  for (TraceReport& part : parts) {
    std::move(part.replays.begin(), part.replays.end(), std::back_inserter(report.replays));
    report.expected += part.expected;
    report.delivered += part.delivered;
    report.lost += part.lost;
    report.zero += part.zero;
    report.unmatched += part.unmatched;
    report.dropped += part.dropped;
  }
  finish_report(report, launches);
  return report;
}

}  // namespace cudabk
