#include "bench/row_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace cudabk {
namespace {

// Of a replay: below it, what events themselves take is no small share of the time between them.
constexpr double kComparableReplayNs = 200e3;
// More than this between the two clocks means that one of them is wrong.
constexpr double kSpanTolerance = 0.05;

// The span of traced replays beside the time of those in between, between events.
void compare_span(double span_ns, double replay_ns, CaseResult& row) {
  row.span_ns = span_ns / row.copies;
  row.span_time_ns = replay_ns / row.copies;
  const double difference = replay_ns > 0 ? span_ns / replay_ns - 1 : 0;
  if (replay_ns > kComparableReplayNs && std::abs(difference) > kSpanTolerance) {
    row.flags.push_back(fmt::format("traced span {:+.1f} %", 100 * difference));
  }
}

// Time as the tracer saw it: from the first kernel's start to the last one's end of every replay.
void use_traced_time(const TraceReport& report, CaseResult& row) {
  row.samples_ns.clear();
  row.clock_samples.clear();  // of other replays
  for (const ReplayTrace& replay : report.replays) {
    if (replay.valid()) {
      row.samples_ns.push_back(replay.span_ns / row.copies);
    }
  }
  row.summary = summarize(row.samples_ns);
  row.timer = "cupti";
  row.stop_reason = "replays";
}

// Launch i of an op is launch i, i + per_op, i + 2 per_op ... of the replay when all copies lower alike.
void add_launch_times(const TraceReport& report, CaseResult& row) {
  if (row.breakdown.size() * static_cast<size_t>(row.copies) != report.launches.size()) {
    return;
  }
  for (size_t i = 0; i < row.breakdown.size(); ++i) {
    std::vector<double> times, gaps;
    for (size_t j = i; j < report.launches.size(); j += row.breakdown.size()) {
      times.push_back(report.launches[j].median_ns);
      gaps.push_back(report.launches[j].median_gap_before_ns);
    }
    row.breakdown[i].median_ns = median(times);
    row.breakdown[i].gap_ns = median(gaps);
    row.breakdown[i].kernels = static_cast<int>(report.launches[i].kernels.size());
  }
}

}  // namespace

void add_trace(const TraceReport& report, bool as_samples, CaseResult& row) {
  if (report.launches.empty()) {
    row.flags.push_back(fmt::format("not traced: {} of {} records matched, {} belong to no launch", report.delivered,
                                    report.expected, report.unmatched));
    return;
  }
  if (report.flagged) {
    row.flags.push_back(fmt::format("{:.1f} % of trace records invalid", report.invalid_percent));
  }
  if (report.median_span_ns && row.timer == "event") {
    compare_span(*report.median_span_ns, report.sample_untraced_ns, row);
  }
  if (as_samples) {
    use_traced_time(report, row);
  }
  if (report.median_busy_ns) {
    row.kernel_ns = *report.median_busy_ns / row.copies;
  }
  if (report.median_gap_ns) {
    row.gap_ns = *report.median_gap_ns / row.copies;
  }
  add_launch_times(report, row);
}

}  // namespace cudabk
