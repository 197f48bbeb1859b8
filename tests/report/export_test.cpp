// The formats of other tools, read by those tools where they are here.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "json_schema.h"
#include "report/sample_report.h"
#include "report/tool.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kCompareScript = "/usr/share/benchmark/compare.py";
constexpr const char* kPython = "/usr/bin/python3";

std::vector<std::string> schema_faults(const std::string& schema, const std::string& text) {
  std::ifstream file(std::string(CUDABK_DOCS) + "/schemas/" + schema);
  SchemaChecker checker(Json::parse(file));
  return checker.check(Json::parse(text));
}

size_t timed_cases(const RunResult& run) {
  return static_cast<size_t>(
      std::count_if(run.cases.begin(), run.cases.end(), [](const CaseResult& c) { return c.time_ns().has_value(); }));
}

TEST(Export, BencherFollowsItsSchema) {
  const RunResult run = report_run();
  const std::string text = result_to_bencher(run);
  EXPECT_EQ(schema_faults("export-bencher.json", text), std::vector<std::string>());
  const Json json = Json::parse(text);
  EXPECT_EQ(json.size(), timed_cases(run));
  const CaseResult& first = run.cases.front();
  const Json& latency = json[first.key]["latency"];
  EXPECT_DOUBLE_EQ(latency["value"].get<double>(), *first.time_ns());
  EXPECT_LE(latency["lower_value"], latency["value"]);
  EXPECT_LE(latency["value"], latency["upper_value"]);
  EXPECT_NEAR(json[first.key]["throughput"]["value"].get<double>(), *first.operations_per_ns() * 1e9, 1e3);
}

TEST(Export, GitHubActionFollowsItsSchema) {
  const RunResult run = report_run();
  const std::string text = result_to_github_action(run);
  EXPECT_EQ(schema_faults("export-github-action.json", text), std::vector<std::string>());
  const Json json = Json::parse(text);
  EXPECT_EQ(json.size(), timed_cases(run));
  EXPECT_EQ(json[0]["name"], run.cases[0].key);
  EXPECT_DOUBLE_EQ(json[0]["value"].get<double>(), *run.cases[0].time_ns());
}

TEST(Export, RepetitionsAreOneBenchmark) {
  RunResult run = report_run();
  run.cases.resize(1);
  run.cases.push_back(run.cases[0]);
  run.cases[1].repetition = 1;
  EXPECT_EQ(Json::parse(result_to_bencher(run)).size(), 1U);
  EXPECT_EQ(Json::parse(result_to_github_action(run)).size(), 1U);
  const Json google = Json::parse(result_to_google_benchmark(run));
  EXPECT_EQ(google["benchmarks"].size(), 120U + 4);
  EXPECT_EQ(google["benchmarks"][0]["repetitions"], 120);
}

TEST(Export, GoogleBenchmarksCompareReadsIt) {
  if (find_tool({"python3"}).empty() || ::access(kCompareScript, R_OK) != 0) {
    GTEST_SKIP() << "compare.py is not installed (apt-get install libbenchmark-tools)";
  }
  if (run_tool({kPython, "-c", "import scipy"}).status != 0) {
    GTEST_SKIP() << "compare.py needs scipy, which " << kPython << " lacks (apt-get install python3-scipy)";
  }
  const TempFolder folder;
  const RunResult old_run = report_run(1), new_run = report_run(100, 1.2);
  const std::string before = folder.write("before.json", result_to_google_benchmark(old_run));
  const std::string after = folder.write("after.json", result_to_google_benchmark(new_run));
  const std::string dump = (folder.path() / "compared.json").string();
  const ToolResult result = run_tool({kPython, kCompareScript, "--no-color", "-d", dump, "benchmarks", before, after});
  ASSERT_EQ(result.status, 0) << result.out;
  std::ifstream file(dump);
  const Json compared = Json::parse(file);
  const std::string slow = "mul_mat type=q6_K m=4096 n=64 k=14336 variant=auto launch=graph fusion=on cache=cold";
  bool found = false;
  for (const Json& row : compared) {
    if (row["name"] == slow + "_median") {
      found = true;
      EXPECT_NEAR(row["measurements"][0]["time"].get<double>(), 0.2, 0.02);
    }
    if (row["name"] == slow && row.contains("utest") && row["utest"].is_object() && !row["utest"].empty()) {
      EXPECT_LT(row["utest"]["time_pvalue"].get<double>(), 1e-6);  // Mann and Whitney's test saw the samples
    }
  }
  EXPECT_TRUE(found) << result.out;
}

TEST(Export, Sqlite3ReadsLlamasTable) {
  const std::string sqlite = find_tool({"sqlite3"});
  if (sqlite.empty()) {
    GTEST_SKIP() << "sqlite3 is not installed (apt-get install sqlite3)";
  }
  const TempFolder folder;
  const ReportInput input = report_input();
  const std::string sql = folder.write("ops.sql", results_to_llama_sql(input.runs));
  const std::string database = (folder.path() / "ops.db").string();
  const ToolResult load = run_tool({sqlite, "-bail", database}, sql);
  ASSERT_EQ(load.status, 0) << load.out;
  EXPECT_EQ(load.out, "");
  const auto ask = [&](const std::string& query) {
    const std::string out = run_tool({sqlite, database, query}).out;
    return out.substr(0, out.find_last_not_of('\n') + 1);
  };
  EXPECT_EQ(ask("select count(*) from test_backend_ops"), fmt::format("{}", 2 * report_run().cases.size()));
  EXPECT_EQ(ask("select count(*) from test_backend_ops where op_params = 'type_a=q6_K,type_b=f32,m=4096,n=64,k=14336,"
                "bs=[1,1],nr=[1,1],per=[0,1,2,3],k_v=0,o=1' and op_name = 'MUL_MAT' and test_mode = 'perf'"),
            "2");
  EXPECT_EQ(
      ask("select count(*) from test_backend_ops where typeof(time_us) = 'real' and typeof(n_runs) = 'integer' and "
          "typeof(supported) = 'integer'"),
      ask("select count(*) from test_backend_ops"));
  EXPECT_EQ(ask("select distinct supported, passed from test_backend_ops where op_params like '%n=4,%'"), "0|0");
  EXPECT_EQ(ask("select count(*) from test_backend_ops where error_message like '%''single'' | pipe'"), "2");
  const double us = *input.runs[1].run.cases[0].time_ns() / 1e3;
  EXPECT_NEAR(std::stod(ask("select time_us from test_backend_ops where test_time like '2026-01-02%' limit 1")), us,
              1e-3);
}

// Fields of RFC 4180 text, by line.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += text[++i];
      } else if (c == '"') {
        quoted = false;
      } else {
        rows.back().back() += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      rows.emplace_back(1, "");
      ++i;
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST(Export, CsvHasTheColumnsOfAllRuns) {
  ReportInput input = report_input();
  input.runs[0].run.cases.resize(2);  // without the layer: its axes come from the other run
  const auto rows = read_csv(report_to_csv(input.runs));
  ASSERT_EQ(rows.size(), 1 + 2 + report_run().cases.size());
  for (const auto& row : rows) {
    EXPECT_EQ(row.size(), rows[0].size());
  }
  EXPECT_EQ(rows[0][0], "file");
  EXPECT_EQ(rows[1][0], "old.json");
  EXPECT_EQ(rows[3][1], "2026-01-02T03:04:05Z");
  EXPECT_TRUE(std::find(rows[0].begin(), rows[0].end(), "tokens") != rows[0].end());
}

TEST(Export, MarkdownHasOneShapeOfRows) {
  const std::string text = report_to_markdown(report_input());
  EXPECT_NE(text.find("### Against the baseline"), std::string::npos);
  EXPECT_NE(text.find("regressed"), std::string::npos);
  size_t columns = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    }
    if (line.empty() || line[0] != '|') {
      columns = 0;
      continue;
    }
    EXPECT_TRUE(columns == 0 || columns == bars) << line;
    columns = bars;
  }
}

TEST(Export, JunitIsXml) {
  const TempFolder folder;
  const std::string file = folder.write("junit.xml", result_to_junit(report_run()));
  if (::access(kPython, X_OK) != 0) {
    GTEST_SKIP() << "no " << kPython << " to parse XML with";
  }
  const ToolResult result = run_tool({kPython, "-c",
                                      "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); "
                                      "print(r.tag, r.get('tests'), len(r), r.get('failures'), r.get('skipped'))",
                                      file});
  EXPECT_EQ(result.out, fmt::format("testsuite {0} {0} 1 1\n", report_run().cases.size()));
}

}  // namespace
}  // namespace cudabk::test
