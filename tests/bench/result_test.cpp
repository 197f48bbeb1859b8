#include "bench/result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "json_schema.h"

namespace cudabk {
namespace {

using Json = nlohmann::json;

CaseResult good_case() {
  CaseResult c;
  c.key = "mul_mat type=q4_K m=4096 n=1 k=4096 variant=auto launch=graph fusion=on cache=cold";
  c.target = "mul_mat";
  c.params.set("type", "q4_K");
  c.params.set("m", "4096");
  c.params.set("n", "1");
  c.variant = "auto";
  c.launch = "graph";
  c.fusion = "on";
  c.cache = "cold";
  c.status = CaseStatus::kOk;
  c.family = "mmvq";
  c.config = {{"rows", 2}, {"warps", 4}};
  c.copies = 28;
  c.launches = 2;
  c.cost = {9.5e6, 3.4e7, 9.4e6};
  c.samples_ns = {2000, 2010, 1990, 2005, 1995, 2001, 1999};
  c.summary = summarize(c.samples_ns);
  c.check = {true, true, 1e-6, 5e-4, 4096, "fine"};
  c.breakdown.push_back({"mmvq q4_K", "mmvq<DType::q4_K, 1, 4, 2>", "sha256:00", {4096, 1, 1}, {128, 1, 1}});
  c.command = "cudabk bench mul_mat --type q4_K -m 4096 -n 1";
  return c;
}

RunResult good_run() {
  RunResult run;
  run.environment.tool_version = "0.1.0";
  run.environment.device.name = "NVIDIA H200";
  run.environment.device.arch = "sm_90a";
  run.environment.started = "2026-01-02T03:04:05Z";
  run.limits.read_bytes_per_ns = 4500;
  run.cases.push_back(good_case());
  run.complete = true;
  return run;
}

std::string schema_faults(const std::string& document) {
  const Result<std::string> schema = read_file(CUDABK_SCHEMA);
  if (!schema.ok()) {
    return schema.error().message;
  }
  std::string text;
  for (const std::string& fault : test::SchemaChecker(Json::parse(*schema)).check(Json::parse(document))) {
    text += fault + "\n";
  }
  return text;
}

TEST(ResultJson, FollowsItsSchema) { EXPECT_EQ(schema_faults(result_to_json(good_run())), ""); }

TEST(ResultJson, SchemaCheckerFindsFaults) {
  Json json = Json::parse(result_to_json(good_run()));
  json["cases"][0]["launch"] = "both";
  json["cases"][0].erase("key");
  json["cases"][0]["surprise"] = 1;
  json["complete"] = "yes";
  json["digest"] = "sha256:xyz";
  const std::string faults = schema_faults(json.dump());
  for (const char* expected : {"/cases/0/launch", "lacks \"key\"", "unknown member surprise", "/complete", "/digest"}) {
    EXPECT_NE(faults.find(expected), std::string::npos) << expected << " in\n" << faults;
  }
}

TEST(ResultJson, NaNAndInfinityBecomeNull) {
  RunResult run = good_run();
  CaseResult& c = run.cases[0];
  c.samples_ns = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  c.summary->mean = std::numeric_limits<double>::infinity();
  c.summary->median = std::numeric_limits<double>::quiet_NaN();
  c.cost.bytes = -std::numeric_limits<double>::infinity();
  c.kernel_ns = std::numeric_limits<double>::quiet_NaN();
  c.check.nmse = std::numeric_limits<double>::infinity();
  const std::string text = result_to_json(run);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf\""), std::string::npos);
  const Json json = Json::parse(text);
  EXPECT_TRUE(json["cases"][0]["samples_ns"][0].is_null());
  EXPECT_TRUE(json["cases"][0]["figures"]["time_ns"].is_null());
  EXPECT_TRUE(json["cases"][0]["check"]["nmse"].is_null());
  EXPECT_EQ(schema_faults(text), "");
}

TEST(ResultJson, CasesWithoutSamplesHaveNullMetricsAndAStatus) {
  RunResult run = good_run();
  for (const CaseStatus status : {CaseStatus::kWrong, CaseStatus::kNoSamples, CaseStatus::kOutOfMemory}) {
    CaseResult c = good_case();
    c.status = status;
    c.samples_ns.clear();
    c.summary.reset();
    c.message = "why";
    run.cases.push_back(c);
  }
  const Json json = Json::parse(result_to_json(run));
  EXPECT_EQ(schema_faults(json.dump()), "");
  for (size_t i = 1; i < json["cases"].size(); ++i) {
    EXPECT_TRUE(json["cases"][i]["figures"]["time_ns"].is_null());
    EXPECT_TRUE(json["cases"][i]["summary"].is_null());
    EXPECT_NE(json["cases"][i]["status"], "ok");
  }
}

TEST(ResultJson, OneSampleHasATimeAndNoNoise) {
  RunResult run = good_run();
  run.cases[0].samples_ns = {2000};
  run.cases[0].summary = summarize(run.cases[0].samples_ns);
  const std::string text = result_to_json(run);
  EXPECT_EQ(schema_faults(text), "");
  const Json summary = Json::parse(text)["cases"][0]["summary"];
  EXPECT_EQ(summary["median_ns"], 2000);
  EXPECT_TRUE(summary["noise_percent"].is_null());
  EXPECT_TRUE(summary["half_width"].is_null());
  EXPECT_NE(result_to_markdown(run).find("| 2.00 µs | - |"), std::string::npos) << result_to_markdown(run);
  EXPECT_NE(result_to_csv(run).find(",2000,,1,"), std::string::npos) << result_to_csv(run);
}

TEST(ResultJson, AWrongResultNeverHasATime) {
  CaseResult c = good_case();
  c.status = CaseStatus::kWrong;
  EXPECT_FALSE(c.time_ns());
  EXPECT_FALSE(c.bytes_per_ns());
}

TEST(ResultJson, DigestCoversWhatTheDocumentSaysAndNotItsLayout) {
  const std::string text = result_to_json(good_run());
  const Json json = Json::parse(text);
  const std::string digest = json["digest"];
  EXPECT_EQ(*digest_of_result(text), digest);
  EXPECT_EQ(*digest_of_result(json.dump()), digest) << "names sorted, no blanks";
  std::string whole = text;  // as jq writes it
  ASSERT_NE(whole.find("2010.0"), std::string::npos);
  whole.replace(whole.find("2010.0"), 6, "2010");
  EXPECT_EQ(*digest_of_result(whole), digest);

  RunResult other = good_run();
  other.environment.device.name = "another device";
  EXPECT_NE(*digest_of_result(result_to_json(other)), digest);
  other = good_run();
  other.cases[0].samples_ns[3] += 0.5;
  EXPECT_NE(*digest_of_result(result_to_json(other)), digest);
  EXPECT_FALSE(digest_of_result("{}").ok());
  EXPECT_FALSE(digest_of_result("{\"schema\": \"cudabk-result/1\"").ok());
  EXPECT_FALSE(digest_of_result(std::string(100000, '[')).ok());
}

TEST(ResultJson, InvalidUtf8IsReplaced) {
  RunResult run = good_run();
  run.environment.tags["note"] = "\xff\xfe";
  const std::string text = result_to_json(run);
  ASSERT_TRUE(Json::accept(text));
  EXPECT_EQ(*digest_of_result(text), Json::parse(text)["digest"].get<std::string>());
}

TEST(ResultJsonl, IsOneDocumentPerLine) {
  const std::string text = result_to_jsonl(good_run());
  size_t lines = 0;
  for (size_t begin = 0; begin < text.size(); ++lines) {
    const size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_TRUE(Json::accept(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  EXPECT_EQ(lines, 2U);
}

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  RunResult run = good_run();
  run.cases[0].message = "a, \"b\"";
  EXPECT_NE(result_to_csv(run).find(",\"a, \"\"b\"\"\","), std::string::npos);
}

TEST(Csv, EmptyWhereThereIsNoNumber) {
  RunResult run = good_run();
  run.cases[0].status = CaseStatus::kWrong;
  const std::string text = result_to_csv(run);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_NE(text.find("wrong,"), std::string::npos);
}

TEST(Junit, EscapesAndCounts) {
  RunResult run = good_run();
  CaseResult bad = good_case();
  bad.status = CaseStatus::kWrong;
  bad.message = "1 < 2 & \"3\"";
  run.cases.push_back(bad);
  const std::string text = result_to_junit(run);
  EXPECT_NE(text.find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), std::string::npos) << text;
  EXPECT_NE(text.find("1 &lt; 2 &amp; &quot;3&quot;"), std::string::npos) << text;
}

TEST(Markdown, HasOneRowPerCase) {
  RunResult run = good_run();
  run.cases[0].flags = {"a|b"};
  const std::string text = result_to_markdown(run);
  EXPECT_NE(text.find("a\\|b"), std::string::npos);
  EXPECT_NE(text.find("| 2.00 µs |"), std::string::npos) << text;
}

TEST(Limits, TheCloserRoofCounts) {
  CaseResult c = good_case();
  RunLimits limits;
  EXPECT_FALSE(limit_fraction(c, limits));
  limits.read_bytes_per_ns = 9500;  // 1000 ns
  EXPECT_NEAR(*limit_fraction(c, limits), 0.5, 0.01);
  limits.gemm_operations_per_ns = 3.4e7 / 1500;  // 1500 ns
  EXPECT_NEAR(*limit_fraction(c, limits), 0.75, 0.01);
}

}  // namespace
}  // namespace cudabk
