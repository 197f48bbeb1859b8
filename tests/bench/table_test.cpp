#include "bench/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/report_row.h"

namespace cudabk {
namespace {

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  TextTable table({{"type", false}, {"n", true, 4}, {"time", true}});
  EXPECT_EQ(table.header(), "type     n  time\n----  ----  ----\n");
  EXPECT_EQ(table.row({"q8_0", "16", "1 ns"}), "q8_0    16  1 ns\n");
}

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("11.4 µs"), 7U);
  TextTable table({{"time", true, 8}, {"x", false}});
  EXPECT_EQ(table.row({"11.4 µs", "y"}), " 11.4 µs  y\n");
}

TEST(Table, HasNoTrailingBlanks) {
  TextTable table({{"a", false, 5}, {"remarks", false}});
  EXPECT_EQ(table.row({"1", ""}), "1\n");
}

TEST(Table, LongCellsPushOn) {
  TextTable table({{"a", true}, {"b", true}});
  EXPECT_EQ(table.row({"12345", "6"}), "12345  6\n");
  table.widen(1, "123");
  EXPECT_EQ(table.row({"1", "6"}), "1    6\n");
}

// A sweep over a side axis: the rows that have its usual value say so, and nothing above the table speaks for them.
TEST(RowLayout, TheUsualValueOfASweptSideAxisIsShown) {
  BenchCase plain;
  plain.target = "mul_mat";
  plain.params.values = {{"type", "q4_K"}, {"m", "16"}, {"n", "1"}, {"k", "256"}};
  BenchCase exact = plain;
  exact.params.set("prec", "f32");
  BenchCase other = plain;
  other.target = "add";
  const auto has_column = [](const RowLayout& layout, const std::string& name) {
    const std::vector<Column> columns = layout.columns();
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.header == name; });
  };
  const RowLayout swept({plain, exact}, false);
  EXPECT_TRUE(has_column(swept, "prec"));
  EXPECT_EQ(swept.common().find("prec"), std::string::npos) << swept.common();
  CaseResult row;
  row.target = plain.target;
  row.params = plain.params;
  const std::vector<std::string> cells = swept.cells(row, {});
  EXPECT_EQ(std::count(cells.begin(), cells.end(), "default"), 1);

  // The same everywhere, or everywhere where the op has the axis: above the table.
  EXPECT_EQ(RowLayout({exact, exact}, false).common().rfind("prec f32, ", 0), 0U);
  EXPECT_EQ(RowLayout({exact, other}, false).common().rfind("prec f32, ", 0), 0U);
}

TEST(Figures, KeepThreeDigits) {
  EXPECT_EQ(format_figure(1.2345), "1.23");
  EXPECT_EQ(format_figure(12.345), "12.3");
  EXPECT_EQ(format_figure(1234.5), "1234");
  EXPECT_EQ(format_figure(0), "0.00");
  EXPECT_EQ(format_figure(0.00123), "0.00123");
  EXPECT_EQ(format_figure(std::numeric_limits<double>::quiet_NaN()), "-");
}

// Columns keep their places whatever the speed: that of the emulated device has six decimals.
TEST(Table, RowsOfSlowDevicesStayAligned) {
  BenchCase c;
  c.target = "add";
  c.params.set("rows", "1");
  const RowLayout layout({c}, false);
  const TextTable table(layout.columns());
  CaseResult row;
  row.target = c.target;
  row.params = c.params;
  row.status = CaseStatus::kOk;
  row.launches = 7;
  row.summary.emplace();
  row.summary->median = 1e6;
  row.cost.bytes = 123.4;
  std::vector<size_t> places;
  for (const double operations : {415e3, 4.15e6, 4.15e9}) {
    row.cost.operations = operations;
    places.push_back(table.row(layout.cells(row, RunLimits{})).find(" 7  "));
  }
  EXPECT_EQ(places, std::vector<size_t>(3, places[0]));
}

}  // namespace
}  // namespace cudabk
