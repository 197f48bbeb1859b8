#include "bench/row_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cudabk {
namespace {

// Two copies of an op with one launch; spans of 10 replays around `span_ns`.
TraceReport report_of(double span_ns, double untraced_ns) {
  TraceReport report;
  for (int i = 0; i < 10; ++i) {
    ReplayTrace replay;
    replay.span_ns = span_ns;
    replay.expected = replay.delivered = 2;
    report.replays.push_back(replay);
  }
  report.launches.resize(2);
  report.launches[0] = {.median_ns = 40e3, .median_gap_before_ns = 0, .kernels = {KernelRecord{}}};
  report.launches[1] = {.median_ns = 44e3, .median_gap_before_ns = 1e3, .kernels = {KernelRecord{}}};
  report.median_span_ns = span_ns;
  report.median_busy_ns = 84e3;
  report.median_gap_ns = 1e3;
  report.sample_untraced_ns = untraced_ns;
  return report;
}

CaseResult timed_row() {
  CaseResult row;
  row.copies = 2;
  row.launches = 1;
  row.timer = "event";
  row.breakdown.resize(1);
  row.samples_ns = {1, 2, 3};
  return row;
}

TEST(RowTrace, FiguresArePerOp) {
  CaseResult row = timed_row();
  add_trace(report_of(300e3, 303e3), false, row);
  EXPECT_DOUBLE_EQ(*row.span_ns, 150e3);
  EXPECT_DOUBLE_EQ(*row.span_time_ns, 151.5e3);
  EXPECT_DOUBLE_EQ(*row.kernel_ns, 42e3);
  EXPECT_DOUBLE_EQ(*row.gap_ns, 500);
  EXPECT_DOUBLE_EQ(*row.breakdown[0].median_ns, 42e3);
  EXPECT_EQ(row.breakdown[0].kernels, 1);
  EXPECT_EQ(row.samples_ns.size(), 3U);
  EXPECT_TRUE(row.flags.empty());
}

TEST(RowTrace, AClockThatDisagreesIsFlagged) {
  CaseResult row = timed_row();
  add_trace(report_of(330e3, 300e3), false, row);
  EXPECT_EQ(row.flags, std::vector<std::string>{"traced span +10.0 %"});
  row = timed_row();
  add_trace(report_of(280e3, 300e3), false, row);
  EXPECT_EQ(row.flags, std::vector<std::string>{"traced span -6.7 %"});
  row = timed_row();
  add_trace(report_of(150e3, 180e3), false, row);  // short: the events' own time
  EXPECT_TRUE(row.flags.empty());
  row = timed_row();
  row.timer = "wall";
  add_trace(report_of(330e3, 300e3), false, row);  // the host's clock sees more than the device
  EXPECT_TRUE(row.flags.empty());
  EXPECT_FALSE(row.span_ns.has_value());
}

TEST(RowTrace, SpansAsSamples) {
  CaseResult row = timed_row();
  TraceReport report = report_of(300e3, 303e3);
  report.replays.back().delivered = 1;
  add_trace(report, true, row);
  EXPECT_EQ(row.timer, "cupti");
  EXPECT_EQ(row.samples_ns, std::vector<double>(9, 150e3));
  EXPECT_DOUBLE_EQ(row.summary->median, 150e3);
  EXPECT_DOUBLE_EQ(*row.span_time_ns, 151.5e3);
}

TEST(RowTrace, NothingMatchedIsSaid) {
  CaseResult row = timed_row();
  TraceReport report = report_of(300e3, 303e3);
  report.launches.clear();
  add_trace(report, true, row);
  ASSERT_EQ(row.flags.size(), 1U);
  EXPECT_NE(row.flags[0].find("not traced"), std::string::npos);
  EXPECT_EQ(row.samples_ns.size(), 3U);
  EXPECT_EQ(row.timer, "event");
}

}  // namespace
}  // namespace cudabk
