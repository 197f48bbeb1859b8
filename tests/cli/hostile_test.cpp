// gate, compare, report and replay in the hands of somebody careless, and processes that are killed.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/file.h"
#include "process.h"
#include "results/gate.h"
#include "results/load.h"
#include "results/sample_results.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Hostile : public testing::Test {
 protected:
  static RunResult run_of(const char* code) {
    CaseResult row = sample_case("type=q4_K m=64", noisy_samples(1000, 40, code[0] == 'b' ? 1 : 2));
    row.breakdown[0].code_hash = code;
    return sample_run({row});
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string text(const std::string& name) const {
    Result<std::string> content = read_file(file(name));
    return content.ok() ? std::move(content).value() : "";
  }
  Json verdict() const { return Json::parse(text("verdict.json"), nullptr, false); }
  ProcessResult gate(std::vector<std::string> words, const ProcessOptions& options = {}) const {
    words.insert(words.begin(), {"gate", "--verdict", file("verdict.json")});
    return run_cudabk(words, options);
  }
  void SetUp() override {
    a_ = folder_.write("a.json", result_to_json(run_of("a"))).string();
    b_ = folder_.write("b.json", result_to_json(run_of("b"))).string();
  }

  TempFolder folder_;
  std::string a_, b_;
};

TEST_F(Hostile, CommandLinesThatCannotBeParsedLeaveAVerdict) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--nosuch"}, {"--baseline"}, {"--rounds", "many"}, {"--on-missing", "sometimes"}, {"--confirm", "-1"}}) {
    fs::remove(file("verdict.json"));
    const ProcessResult r = gate(words);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_EQ(verdict()["findings"][0]["code"], "command-line") << words[0];
  }
  // The word behind --verdict may be a slip: what is no verdict stays.
  EXPECT_EQ(run_cudabk({"gate", "--verdict", a_, "--nosuch"}).status, 2);
  EXPECT_TRUE(load_result(a_).ok());
  EXPECT_EQ(run_cudabk({"gate", "--help"}).status, 0);
}

TEST_F(Hostile, FlagsThatWouldMakeAGateBlindAreRefused) {
  const struct {
    std::vector<std::string> words;
    const char* says;
  } situations[] = {
      {{"--threshold", "3"}, "write 3%"},
      {{"--threshold", "0"}, "above 0"},
      {{"--require-rows", "0"}, "no requirement"},
      {{"--require-rows", "-5"}, "no requirement"},
      {{"--require-rows", ""}, "the value is empty"},
      {{"--require-rows", std::string(100'000, '(')}, "too long or too deep"},
  };
  for (const auto& s : situations) {
    std::vector<std::string> words{"--baseline", a_, "--candidate", b_, "--confirm", "0"};
    words.insert(words.end(), s.words.begin(), s.words.end());
    const ProcessResult r = gate(words);
    EXPECT_EQ(r.status, 2) << s.words[0] << r.err;
    EXPECT_NE(r.err.find(s.says), std::string::npos) << r.err;
  }
  const std::string rules = folder_.write("rules", std::string(300'000, '(') + " 3%\n").string();
  EXPECT_EQ(gate({"--baseline", a_, "--candidate", b_, "--threshold-file", rules}).status, 2);
  const std::string nested = R"({"schema":"cudabk-verdict/1","options":{"threshold":0.03,"threshold_rules":[")" +
                             std::string(300'000, '(') + R"( 3%"]}})";
  EXPECT_EQ(run_cudabk({"compare", folder_.write("nested.json", nested).string()}).status, 2);
}

TEST_F(Hostile, WhatIsReadIsNotOverwritten) {
  const std::string before = text("a.json");
  const std::string journal =
      folder_.write("tune.jsonl", *read_file(std::string(CUDABK_TEST_DATA) + "/journal/h200-q4_K.jsonl")).string();
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"gate", "--baseline", a_, "--candidate", b_, "--verdict", a_},
           {"gate", "--baseline", b_, "--candidate", a_, "--verdict", file("v.json"), "--md", file("x/../a.json")},
           {"compare", a_, b_, "--json", a_},
           {"report", a_, "--html", a_},
           {"report", b_, "--baseline", a_, "--md", a_},
           {"replay", a_, "--json", a_},
           {"replay", journal, "--regret", "5%", "--write", journal},
           {"report", b_, "--md", file("same"), "--csv", file("same")},
           {"gate", "--baseline", a_, "--candidate", b_, "--verdict", "-", "--md", "-"},
       }) {
    const ProcessResult r = run_cudabk(words);
    EXPECT_EQ(r.status, 2) << words[0] << " " << words.back() << r.out << r.err;
  }
  EXPECT_EQ(text("a.json"), before);
  EXPECT_EQ(text("tune.jsonl").rfind("{", 0), 0U);
  EXPECT_FALSE(fs::exists(file("same")));
}

TEST_F(Hostile, ACopyOfAResultIsNoSecondMeasurement) {
  folder_.write("base/1.json", text("a.json"));
  folder_.write("base/2.json", text("a.json"));
  const ProcessResult r = gate({"--baseline", file("base"), "--candidate", b_, "--confirm", "0"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_EQ(verdict()["cases"][0]["baseline"]["samples"], 40);
  EXPECT_NE(r.err.find("the same result as"), std::string::npos) << r.err;
  const ProcessResult self = gate({"--baseline", a_, "--candidate", a_, "--confirm", "0"});
  EXPECT_NE(self.out.find("both sides hold the same result"), std::string::npos) << self.out;
}

TEST_F(Hostile, OtherProgramsAreNoBenchmarks) {
  EXPECT_EQ(gate({"--ab", "/bin/true", "--", "mulmat"}).status, 2);
  EXPECT_EQ(gate({"--ab", "/bin/false", "--", "mulmat"}).status, 2);
  EXPECT_EQ(gate({"--ab", a_, "--", "mulmat"}).status, 2);
  for (const char* own : {"--json", "--list", "--help"}) {
    const ProcessResult r = gate({"--control", "--", "mulmat", own});
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_EQ(verdict()["findings"][0]["code"], "command-line") << own;
  }
  EXPECT_EQ(gate({"--control", "--profile", file("none.json"), "--", "mulmat", "-m", "16", "-k", "256"}).status, 2);
}

TEST_F(Hostile, ReplayTakesNoNegativeNumbersAndNoFlagsWithoutEffect) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--first", "-1"}, {"--min-samples", "-1"}, {"--threshold", "3%"}}) {
    std::vector<std::string> line{"replay", a_};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(run_cudabk(line).status, 2) << words[0];
  }
}

TEST_F(Hostile, NamesInAnyScriptAndBytesThatAreNone) {
  const std::string odd = folder_.write("\xff 漢字 'é\" <b>.json", text("a.json")).string();
  const ProcessResult r = gate({"--baseline", odd, "--candidate", b_, "--confirm", "0", "--junit", file("j.xml")});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.find('\xff'), std::string::npos);
  EXPECT_NE(r.out.find("漢字"), std::string::npos);
  EXPECT_TRUE(verdict().is_object());
  EXPECT_EQ(run_cudabk({"report", odd, "--html", file("r.html")}).status, 0);
}

// A hash that this machine cannot compute is not passed over in silence.
TEST_F(Hostile, LintSaysWhichCodeItDidNotCompare) {
  const std::string table =
      R"([{"n": [1, 8], "use": "mmvq", "code": "sha256:)" + std::string(64, '0') + R"("}, {"use": "dequant_gemm"}])";
  const std::string profile =
      R"({"schema": "cudabk-profile/1", "device": {"name": "*", "arch": "sm_80"}, "tables": {"mul_mat": {"q4_K": )" +
      table + R"(, "*": )" + table + "}}}";
  const ProcessResult r = run_cudabk({"profile", "lint", "--code", folder_.write("p.json", profile).string()});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("/tables/mul_mat/q4_K/0: stale"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("1 code hashes were not compared"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("the first: mul_mat * n 1..8: mmvq"), std::string::npos) << r.out;
}

// ---- processes that are ended ----

// Processes whose command line mentions `word`.
size_t processes_with(const std::string& word) {
  size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      const Result<std::string> line = read_file(entry.path() / "cmdline");
      count += line.ok() && line->find(word) != std::string::npos ? 1 : 0;
    }
  }
  return count;
}

const std::vector<std::string> kManyCases{"mulmat", "--type",        "q4_K", "-m",         "16",
                                          "-k",     "256",           "-n",   "1:200",      "--min-samples",
                                          "20",     "--max-samples", "20",   "--no-limits"};

TEST_F(Hostile, AKilledBenchLeavesTheRowsItHad) {
  std::vector<std::string> words{"bench"};
  words.insert(words.end(), kManyCases.begin(), kManyCases.end());
  words.insert(words.end(), {"--json", file("run.json")});
  ProcessOptions options;
  options.when_file = file("run.json");
  options.signal = SIGKILL;
  EXPECT_EQ(run_cudabk(words, options).status, 128 + SIGKILL);
  const Result<ResultFile> left = load_result(file("run.json"));
  ASSERT_TRUE(left.ok()) << left.error().message;
  EXPECT_FALSE(left->run.complete);
  EXPECT_GE(left->run.cases.size(), 1U);
  EXPECT_NE(left->run.incomplete_reason.find("of 200 measurements"), std::string::npos) << left->run.incomplete_reason;
}

TEST_F(Hostile, TerminationIsAnInterruption) {
  std::vector<std::string> words{"bench"};
  words.insert(words.end(), kManyCases.begin(), kManyCases.end());
  words.insert(words.end(), {"--json", file("run.json")});
  ProcessOptions options;
  options.when_file = file("run.json");
  for (const int signal : {SIGTERM, SIGHUP}) {
    fs::remove(file("run.json"));
    options.signal = signal;
    EXPECT_EQ(run_cudabk(words, options).status, 130) << signal;
    const Result<ResultFile> left = load_result(file("run.json"));
    ASSERT_TRUE(left.ok()) << left.error().message;
    EXPECT_EQ(left->run.incomplete_reason, "interrupted") << signal;
  }
}

TEST_F(Hostile, AKilledGateLeavesNeitherAnOldVerdictNorABenchmark) {
  EXPECT_EQ(gate({"--baseline", a_, "--candidate", b_, "--confirm", "0"}).status, 0);
  std::vector<std::string> words{"--control", "--keep", file("kept"), "--"};
  words.insert(words.end(), kManyCases.begin(), kManyCases.end() - 1);  // gate adds --no-limits itself
  ProcessOptions options;
  options.when_file = file("kept/round1-a.json");
  options.signal = SIGKILL;
  EXPECT_EQ(gate(words, options).status, 128 + SIGKILL);
  EXPECT_EQ(verdict()["exit_status"], 130);
  EXPECT_EQ(verdict()["findings"][0]["code"], "unfinished");
  for (int i = 0; i < 200 && processes_with(file("kept")) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(processes_with(file("kept")), 0U);
  EXPECT_TRUE(load_result(file("kept/round1-a.json")).ok());
}

TEST_F(Hostile, AnInterruptedGateJudgesTheRoundsItHas) {
  ProcessOptions options;
  options.when_file = file("kept/round2-b.json");
  const ProcessResult r =
      gate({"--control", "--rounds", "500", "--keep", file("kept"), "--", "mulmat", "--type", "q4_K", "-m", "16", "-k",
            "256", "-n", "1", "--min-samples", "20", "--max-samples", "20"},
           options);
  EXPECT_EQ(r.status, 130) << r.out << r.err;
  const Json json = verdict();
  EXPECT_EQ(json["findings"][0]["code"], "measurement");
  EXPECT_EQ(json["cases"].size(), 1U) << json.dump(1);
  EXPECT_NE(r.out.find("interrupted after"), std::string::npos) << r.out;
}

}  // namespace
}  // namespace cudabk::test
