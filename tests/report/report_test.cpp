// The page's data: what is in it, and that nothing in a result can break it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "dispatch/profile.h"
#include "report/payload.h"
#include "report/sample_report.h"
#include "report/switches.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

TEST(Report, ThePageIsWholeAndRefersToNothing) {
  const std::string html = report_to_html(report_input());
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(html.find("</html>"), std::string::npos);
  EXPECT_EQ(html.find("@DATA@"), std::string::npos);
  EXPECT_NE(html.find("Chart.js Contributors"), std::string::npos);
  EXPECT_NE(html.find("Permission is hereby granted"), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_FALSE(std::regex_search(html.substr(0, html.find("<style>")), std::regex("(src|href)=\"?(https?:)?//")));
  for (const char* word : {"@import", "sourceMappingURL", "<link rel=\"stylesheet", "<script src"}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
}

TEST(Report, TextsOfTheResultStayTexts) {
  const std::string html = report_to_html(report_input());
  EXPECT_EQ(html.find("document.title = 'broken'</script>"), std::string::npos);
  EXPECT_EQ(report_payload(report_input()).find('<'), std::string::npos);
  ReportInput input = report_input();
  input.title = "<b>&\"@DATA@";
  EXPECT_NE(report_to_html(input).find("<title>&lt;b&gt;&amp;&quot;@DATA@</title>"), std::string::npos);
}

TEST(Report, ThePayloadHasCasesChangesAndHistory) {
  const Json data = Json::parse(report_payload(report_input()));
  EXPECT_EQ(data["runs"].size(), 2U);
  EXPECT_EQ(data["cases"].size(), report_run().cases.size());
  EXPECT_EQ(data["cases"][0]["history"].size(), 2U);
  EXPECT_TRUE(data["cases"][0]["time"].is_number());
  EXPECT_TRUE(data["changes"].is_array());
  size_t regressed = 0;
  for (const Json& change : data["changes"]) {
    if (change["verdict"] == "regressed") {
      ++regressed;
      EXPECT_NE(change["key"].get<std::string>().find("type=q6_K m=4096 n=64"), std::string::npos);
      EXPECT_NEAR(change["change"].get<double>(), 0.2, 0.02);
    }
  }
  EXPECT_EQ(regressed, 1U);
  for (const Json& c : data["cases"]) {
    if (c["status"] != "ok") {
      EXPECT_TRUE(c["time"].is_null());
      EXPECT_TRUE(c["limit"].is_null());
    }
  }
}

TEST(Report, SwitchPointsWithoutAProfileLieBetweenTheMeasuredNeighbours) {
  ReportInput input;
  input.runs.push_back(file_of(report_run(), "new.json"));
  const std::vector<SwitchPoint> points = switch_points(input);
  // Per type: mmvq -> mmq between 8 and 64, mmq -> blas between 64 and 512; q4_K's wrong row at n = 2 is mmvq as well.
  ASSERT_EQ(points.size(), 6U);
  for (const SwitchPoint& p : points) {
    EXPECT_FALSE(p.exact);
    EXPECT_TRUE((p.low == 8 && p.high == 64) || (p.low == 64 && p.high == 512)) << p.low << " " << p.high;
  }
  EXPECT_TRUE(choice_map(input).empty());
}

// What the built-in table picks, as if it had run.
TEST(Report, AProfileThatReproducesTheChoicesGivesExactSwitchPoints) {
  ReportInput input;
  const Result<DeviceInfo> device = describe_architecture("sm_90a");
  ASSERT_TRUE(device.ok());
  input.device = *device;
  const Result<const OpDef*> op = find_op("mul_mat");
  ASSERT_TRUE(op.ok());
  FamilySet families;
  families.by_op["mul_mat"] = (*op)->families();
  Profile profile;
  Rule few, many;
  const Family* family = find_family((*op)->families(), "mmvq");
  ASSERT_NE(family, nullptr);
  few.use = family->name;
  few.when = {{"n", {1, 21}}};
  many.use = family->name;
  const ConfigParam* param = nullptr;
  for (const ConfigParam& p : family->params) {
    param = p.values.size() > 1 ? &p : param;
  }
  ASSERT_NE(param, nullptr);
  few.config = complete_config(*family, {{param->name, param->values.front()}});
  many.config = complete_config(*family, {{param->name, param->values.back()}});
  profile.tables["mul_mat"]["q4_K"].rules = {few, many};
  input.profile = profile;
  RunResult run = report_run();
  std::erase_if(run.cases, [](const CaseResult& c) { return c.params.get("type") != "q4_K" || c.target != "mul_mat"; });
  for (CaseResult& c : run.cases) {
    Graph graph;
    const Result<Tensor*> t = (*op)->build(graph, c.params);
    ASSERT_TRUE(t.ok());
    const Problem problem = (*op)->problem(**t);
    const Result<Choice> choice = choose(problem, *device, profile.table(problem), (*op)->families());
    ASSERT_TRUE(choice.ok());
    c.family = choice->family;
    c.config = choice->config;
  }
  input.runs.push_back(file_of(run, "new.json"));
  const std::vector<SwitchPoint> points = switch_points(input);
  ASSERT_FALSE(points.empty());
  bool at_boundary = false;
  for (const SwitchPoint& p : points) {
    EXPECT_TRUE(p.exact);
    EXPECT_NE(p.from, p.to);
    at_boundary = at_boundary || p.high == 22;
  }
  EXPECT_TRUE(at_boundary);
  EXPECT_GE(choice_map(input).size(), 10U);  // 1, 2, 4, ... 512
}

// Numbers and texts that no run should write, in every field.
TEST(Report, HostileResultsNeverCrashAnything) {
  std::printf("seed 20260131\n");
  std::mt19937_64 random(20260131);
  const std::vector<double> numbers = {0, -1, 1e308, -1e308, 1e-308, HUGE_VAL, -HUGE_VAL, std::nan(""), 5e-324};
  const std::vector<std::string> texts = {"",
                                          std::string(3, '\0'),
                                          "\xff\xfe",
                                          "</script>",
                                          "'; drop table x; --",
                                          "\r\n,\"",
                                          "@DATA@",
                                          std::string(5000, 'x'),
                                          "type=",
                                          "99999999999999999999",
                                          "-3"};
  const auto number = [&] { return numbers[random() % numbers.size()]; };
  const auto text = [&] { return texts[random() % texts.size()]; };
  for (int round = 0; round < 150; ++round) {
    ReportInput input = report_input();
    for (CaseResult& c : input.runs[random() % 2].run.cases) {
      switch (random() % 8) {
        case 0:
          c.samples_ns = {number(), number(), number()};
          c.summary = summarize(c.samples_ns);
          break;
        case 1:
          c.cost = {number(), number(), number()};
          break;
        case 2:
          c.params.set("n", text());
          c.params.set(text(), text());
          break;
        case 3:
          c.key = text();
          c.target = text();
          break;
        case 4:
          c.family = text();
          c.config = {{text(), INT32_MIN}};
          c.copies = INT32_MIN;
          break;
        case 5:
          c.check.nmse = number();
          c.message = text();
          c.clocks_mhz = {number()};
          break;
        case 6:
          c.summary->median = number();
          c.summary->interval = {number(), number()};
          break;
        default:
          c.breakdown.push_back({text(), text(), text()});
          c.breakdown.back().median_ns = number();
      }
    }
    input.runs[1].run.limits = {number(), number(), number(), text(), text()};
    input.runs[1].run.environment.started = text();
    input.device = describe_architecture("sm_90a").value();
    input.profile = Profile();
    EXPECT_FALSE(Json::parse(report_payload(input), nullptr, false).is_discarded());
    const RunResult& run = input.runs[1].run;
    EXPECT_FALSE(Json::parse(result_to_bencher(run), nullptr, false).is_discarded());
    EXPECT_FALSE(Json::parse(result_to_github_action(run), nullptr, false).is_discarded());
    EXPECT_FALSE(Json::parse(result_to_google_benchmark(run), nullptr, false).is_discarded());
    EXPECT_EQ(results_to_llama_sql(input.runs).find('\0'), std::string::npos);
    EXPECT_FALSE(report_to_markdown(input).empty());
    EXPECT_FALSE(report_to_csv(input.runs).empty());
    EXPECT_FALSE(report_to_html(input).empty());
  }
}

}  // namespace
}  // namespace cudabk::test
