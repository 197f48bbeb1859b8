#include "results/load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/sample_results.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;
using test::noisy_samples;
using test::sample_case;
using test::sample_run;
using test::TempFolder;

RunResult two_cases() {
  return sample_run({sample_case("type=q4_K m=4096 n=1 k=4096", noisy_samples(2000, 30, 1)),
                     sample_case("type=q4_K m=4096 n=8 k=4096", noisy_samples(3000, 30, 2))});
}

TEST(LoadResult, ReadsBackEverythingThatWasWritten) {
  RunResult run = two_cases();
  run.complete = false;
  run.incomplete_reason = "--budget used up";
  run.limits.note = "gemm not measured";
  run.environment.facts["clock"] = "1980 MHz";
  run.environment.tags["commit"] = "abc";
  run.environment.device.driver_text = "580";
  run.cases[1].status = CaseStatus::kWrong;
  run.cases[1].samples_ns.clear();
  run.cases[1].summary.reset();
  run.cases[1].check.passed = false;
  run.cases[1].check.worst = "[3,0,0,0]: 1, reference 2";
  run.cases[0].flags = {"throttled"};
  run.cases[0].fusions = {"norm_mul"};
  run.cases[0].kernel_ns = 1900;
  run.cases[0].seed = UINT64_MAX;
  const std::string text = result_to_json(run);
  const Result<ResultFile> file = parse_result(text, "a.json");
  ASSERT_TRUE(file.ok()) << file.error().message;
  // Reading and writing again gives the same text: nothing is lost.
  Json first = Json::parse(text), again = Json::parse(result_to_json(file->run));
  EXPECT_NEAR(again["limits"]["read_bytes_per_second"].get<double>(), 4.5e12, 1);
  first.erase("digest"), again.erase("digest");
  first.erase("limits"), again.erase("limits");
  for (Json* json : {&first, &again}) {
    (*json)["cases"][0]["figures"].erase("limit_fraction");
  }
  EXPECT_EQ(first.dump(1), again.dump(1));
}

TEST(LoadResult, FewSamplesHaveNoNoiseAlsoInOlderDocuments) {
  RunResult run = two_cases();
  run.cases[0].samples_ns = {2000};
  run.cases[0].summary = summarize(run.cases[0].samples_ns);
  for (const bool older : {false, true}) {
    if (older) {
      run.cases[0].summary->noise_percent = run.cases[0].summary->half_width = 0;
    }
    const Result<ResultFile> file = parse_result(result_to_json(run), "a.json");
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_FALSE(file->run.cases[0].summary->noise_percent);
    EXPECT_FALSE(file->run.cases[0].summary->half_width);
    EXPECT_GT(file->run.cases[1].summary->noise_percent.value(), 0);
  }
}

TEST(LoadResult, KeepsItsDigestWhenAnotherToolHasWrittenItAgain) {
  const Json json = Json::parse(result_to_json(two_cases()));
  EXPECT_TRUE(parse_result(json.dump(), "a.json").ok()) << "without blanks";
  EXPECT_TRUE(parse_result(nlohmann::json(json).dump(4), "a.json").ok()) << "names sorted";
}

struct FaultCase {
  const char* name;
  LoadFault fault;
  ErrorKind kind;
  const char* message;
  std::string (*text)();
};

std::string changed(void (*change)(Json&), bool seal = true) {
  Json json = Json::parse(result_to_json(two_cases()));
  change(json);
  if (seal && json.value("schema", "") == kResultSchema) {
    json["digest"] = *digest_of_result(json.dump());
  }
  return json.dump(1);
}

const FaultCase kFaults[] = {
    {"empty", LoadFault::kNotJson, ErrorKind::kInvalid, "empty", [] { return std::string(" \n"); }},
    {"truncated", LoadFault::kNotJson, ErrorKind::kInvalid, "truncated",
     [] {
       const std::string text = result_to_json(two_cases());
       return text.substr(0, text.size() / 2);
     }},
    {"more behind a zero byte", LoadFault::kNotJson, ErrorKind::kInvalid, "not JSON",
     [] { return result_to_json(two_cases()) + std::string("\0x", 2); }},
    {"deep", LoadFault::kNotJson, ErrorKind::kInvalid, "deeper", [] { return std::string(1000000, '['); }},
    {"list", LoadFault::kOtherDocument, ErrorKind::kInvalid, "no result", [] { return std::string("[1, 2]"); }},
    {"profile", LoadFault::kOtherDocument, ErrorKind::kInvalid, "cudabk-profile/1",
     [] { return std::string(R"({"schema": "cudabk-profile/1"})"); }},
    {"newer", LoadFault::kNewerSchema, ErrorKind::kInvalid, "newer than this program",
     [] { return changed([](Json& json) { json["schema"] = "cudabk-result/2"; }); }},
    {"older", LoadFault::kOlderSchema, ErrorKind::kInvalid, "older than",
     [] { return changed([](Json& json) { json["schema"] = "cudabk-result/0"; }); }},
    {"strange version", LoadFault::kOtherDocument, ErrorKind::kInvalid, "cudabk-result/x",
     [] { return changed([](Json& json) { json["schema"] = "cudabk-result/x"; }); }},
    {"json lines", LoadFault::kOtherDocument, ErrorKind::kInvalid, "use --json",
     [] { return result_to_jsonl(sample_run({})); }},
    {"missing member", LoadFault::kMalformed, ErrorKind::kInvalid, "/cases/1: lacks \"samples_ns\"",
     [] { return changed([](Json& json) { json["cases"][1].erase("samples_ns"); }); }},
    {"wrong type", LoadFault::kMalformed, ErrorKind::kInvalid, "/cases/0/key: expected text, found 7",
     [] { return changed([](Json& json) { json["cases"][0]["key"] = 7; }); }},
    {"wrong range", LoadFault::kMalformed, ErrorKind::kInvalid, "/cases/0/repetition: -1",
     [] { return changed([](Json& json) { json["cases"][0]["repetition"] = -1; }); }},
    {"wrong status", LoadFault::kMalformed, ErrorKind::kInvalid, "unknown status \"fine\"",
     [] { return changed([](Json& json) { json["cases"][0]["status"] = "fine"; }); }},
    {"sample edited", LoadFault::kEdited, ErrorKind::kInvalid, "digest does not match",
     [] { return changed([](Json& json) { json["cases"][0]["samples_ns"][3] = 1.0; }, false); }},
    {"device edited", LoadFault::kEdited, ErrorKind::kInvalid, "digest does not match",
     [] { return changed([](Json& json) { json["environment"]["device"]["name"] = "H100"; }, false); }},
    {"no digest", LoadFault::kEdited, ErrorKind::kInvalid, "no digest",
     [] { return changed([](Json& json) { json.erase("digest"); }, false); }},
    {"duplicates", LoadFault::kDuplicates, ErrorKind::kInvalid, "two rows have the key",
     [] { return changed([](Json& json) { json["cases"].push_back(json["cases"][0]); }); }},
    {"no rows", LoadFault::kNoRows, ErrorKind::kNothing, "no rows",
     [] { return changed([](Json& json) { json["cases"] = Json::array(); }); }},
};

TEST(LoadResult, EverySituationHasItsOwnFaultAndMessage) {
  for (const FaultCase& c : kFaults) {
    LoadFault fault = LoadFault::kNone;
    const Result<ResultFile> file = parse_result(c.text(), "some.json", &fault);
    ASSERT_FALSE(file.ok()) << c.name;
    EXPECT_EQ(fault, c.fault) << c.name << ": " << load_fault_name(fault);
    EXPECT_EQ(file.error().kind, c.kind) << c.name;
    EXPECT_NE(file.error().message.find(c.message), std::string::npos) << c.name << ": " << file.error().message;
    EXPECT_EQ(file.error().message.rfind("some.json: ", 0), 0U) << file.error().message;
  }
  LoadFault fault = LoadFault::kNone;
  EXPECT_FALSE(load_result("/nonexistent/a.json", &fault).ok());
  EXPECT_EQ(fault, LoadFault::kUnreadable);
  EXPECT_TRUE(parse_result(result_to_json(two_cases()), "a.json", &fault).ok());
  EXPECT_EQ(fault, LoadFault::kNone);
}

TEST(LoadResult, RepetitionsOfOneKeyAreNoDuplicates) {
  RunResult run = two_cases();
  run.cases.push_back(run.cases[0]);
  run.cases[2].repetition = 1;
  EXPECT_TRUE(parse_result(result_to_json(run), "a.json").ok());
}

TEST(LoadResults, AFolderIsReadInTimeOrderAndOtherDocumentsAreListed) {
  const TempFolder folder;
  RunResult run = two_cases();
  run.environment.started = "2026-01-03T00:00:00Z";
  folder.write("a.json", result_to_json(run));
  run.environment.started = "2026-01-01T00:00:00Z";
  folder.write("b.json", result_to_json(run));
  folder.write("profile.json", R"({"schema": "cudabk-profile/1"})");
  folder.write("notes.txt", "no JSON");
  const Result<ResultSet> set = load_results(folder.path());
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->files.size(), 2U);
  EXPECT_EQ(set->files[0].path.filename(), "b.json");
  ASSERT_EQ(set->skipped.size(), 1U);
  EXPECT_NE(set->skipped[0].find("profile.json"), std::string::npos);

  const Result<ResultSet> history = load_history({folder.path() / "a.json", folder.path() / "b.json"});
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->files[0].path.filename(), "b.json");
}

TEST(LoadResults, AFolderWithABrokenResultOrNoneIsRefused) {
  const TempFolder folder;
  LoadFault fault = LoadFault::kNone;
  EXPECT_FALSE(load_results(folder.path(), &fault).ok());
  EXPECT_EQ(fault, LoadFault::kNoRows);
  folder.write("a.json", result_to_json(two_cases()));
  folder.write("b.json", result_to_json(two_cases()).substr(0, 500));
  EXPECT_FALSE(load_results(folder.path(), &fault).ok());
  EXPECT_EQ(fault, LoadFault::kNotJson);
}

}  // namespace
}  // namespace cudabk
