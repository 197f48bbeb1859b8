// compare and gate as a user or a CI job runs them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "json_schema.h"
#include "process.h"
#include "results/gate.h"
#include "results/sample_results.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

// Results on disk, and a gate over two of them.
class GateCli : public testing::Test {
 protected:
  static RunResult run_of(const char* code, double scale = 1) {
    std::vector<CaseResult> cases;
    for (int i = 0; i < 6; ++i) {
      cases.push_back(sample_case("type=q4_K m=" + std::to_string(64 << i),
                                  noisy_samples((1000 << i) * (i == 2 ? scale : 1), 40,
                                                static_cast<uint64_t>(i) * 2 + (code[0] == 'b' ? 1 : 0))));
      cases.back().breakdown[0].code_hash = code;
    }
    return sample_run(std::move(cases));
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, const RunResult& run) const {
    return folder_.write(name, result_to_json(run)).string();
  }

  // The verdict document of the last gate, checked against its schema.
  Json verdict() const {
    const Result<std::string> text = read_file(file("verdict.json"));
    EXPECT_TRUE(text.ok());
    if (!text.ok()) {
      return {};
    }
    const Json json = Json::parse(*text, nullptr, false);
    for (const std::string& fault : SchemaChecker(Json::parse(*read_file(CUDABK_VERDICT_SCHEMA))).check(json)) {
      ADD_FAILURE() << fault;
    }
    EXPECT_TRUE(parse_verdict(*text, "verdict.json").ok());
    return json;
  }

  ProcessResult gate(std::vector<std::string> words) const {
    std::error_code ec;
    std::filesystem::remove(file("verdict.json"), ec);
    words.insert(words.begin(), {"gate", "--verdict", file("verdict.json"), "--confirm", "0"});
    return run_cudabk(words);
  }

  TempFolder folder_;
};

struct Situation {
  const char* name;
  int exit_status;
  const char* code;     // of the deciding finding; "" for a pass
  const char* message;  // in the text for people
  void (*change)(RunResult& candidate);
  void (*damage)(std::string& text);  // of the candidate's file; may be null
};

void set_schema(std::string& text, const char* schema) { text.replace(text.find("cudabk-result/1"), 15, schema); }

const Situation kSituations[] = {
    {"pass", 0, "", "pass: 6 same", [](RunResult&) {}, nullptr},
    {"regression", 1, "regressed", "1 of 6 cases is slower, +",
     [](RunResult& run) { run.cases[1].samples_ns = noisy_samples(2200, 40, 99); }, nullptr},
    {"few samples", 3, "few-samples", "20 a side are needed",
     [](RunResult& run) { run.cases[1].samples_ns.resize(10); }, nullptr},
    {"one sample", 3, "few-samples", "40 and 1 samples",
     [](RunResult& run) {
       run.cases[1].samples_ns.resize(1);
       run.cases[1].summary = summarize(run.cases[1].samples_ns);
       run.cases[1].clocks_mhz.resize(1);
       run.cases[1].clock_samples = {1};
     },
     nullptr},
    {"case missing", 4, "no-candidate", "only the baseline has this case", [](RunResult& run) { run.cases.pop_back(); },
     nullptr},
    {"other device", 4, "other-device", "other device: the baseline is of NVIDIA H200",
     [](RunResult& run) { run.environment.device.name = "NVIDIA B200"; }, nullptr},
    {"other launch mode", 4, "other-mode", "other launch or cache mode: the baseline has launch graph",
     [](RunResult& run) {
       for (CaseResult& c : run.cases) {
         c.launch = "eager";
         c.key.replace(c.key.find("launch=graph"), 12, "launch=eager");
       }
     },
     nullptr},
    {"other cache mode", 4, "other-mode", "cache cold, the candidate launch graph, cache hot",
     [](RunResult& run) {
       for (CaseResult& c : run.cases) {
         c.cache = "hot";
         c.key.replace(c.key.find("cache=cold"), 10, "cache=hot");
       }
     },
     nullptr},
    {"wrong output", 5, "wrong-output", "the candidate is wrong",
     [](RunResult& run) { run.cases[0].status = CaseStatus::kWrong; }, nullptr},
    {"zero rows", 4, "no-rows", "it has no rows", [](RunResult& run) { run.cases.clear(); }, nullptr},
    {"duplicates", 2, "duplicates", "two rows have the key", [](RunResult& run) { run.cases.push_back(run.cases[0]); },
     nullptr},
    {"newer schema", 2, "newer-schema", "newer than this program", [](RunResult&) {},
     [](std::string& text) { set_schema(text, "cudabk-result/9"); }},
    {"older schema", 2, "older-schema", "is older than", [](RunResult&) {},
     [](std::string& text) { set_schema(text, "cudabk-result/0"); }},
    {"truncated", 2, "not-json", "truncated", [](RunResult&) {},
     [](std::string& text) { text.resize(text.size() / 2); }},
    {"edited", 2, "edited", "the digest does not match", [](RunResult&) {},
     [](std::string& text) { text.replace(text.find("\"sm_count\": 132"), 15, "\"sm_count\": 133"); }},
    {"member missing", 2, "malformed", "lacks \"cases_\"", [](RunResult&) {},
     [](std::string& text) { text.replace(text.find("\"tool\""), 6, "\"toll\""); }},
    {"empty file", 2, "not-json", "the file is empty", [](RunResult&) {}, [](std::string& text) { text.clear(); }},
    {"a profile", 2, "other-document", "no result: its schema is \"cudabk-profile/1\"", [](RunResult&) {},
     [](std::string& text) { text = R"({"schema": "cudabk-profile/1"})"; }},
};

TEST_F(GateCli, EverySituationHasItsMessageAndExitStatus) {
  const std::string baseline = write("base.json", run_of("a"));
  for (const Situation& s : kSituations) {
    RunResult run = run_of("b");
    s.change(run);
    std::string text = result_to_json(run);
    if (s.damage != nullptr) {
      s.damage(text);
    }
    const std::string candidate = folder_.write("new.json", text).string();
    const ProcessResult r = gate({"--baseline", baseline, "--candidate", candidate});
    EXPECT_EQ(r.status, s.exit_status) << s.name << "\n" << r.out << r.err;
    const std::string message = std::string(s.name) == "member missing" ? "lacks \"tool\"" : s.message;
    EXPECT_NE((r.out + r.err).find(message), std::string::npos) << s.name << "\n" << r.out << r.err;
    const Json json = verdict();
    EXPECT_EQ(json["exit_status"], s.exit_status) << s.name;
    EXPECT_EQ(json["findings"].empty() ? "" : json["findings"][0]["code"], s.code) << s.name;
  }
}

TEST_F(GateCli, MissingFilesHaveTheirOwnStatus) {
  const std::string candidate = write("new.json", run_of("b"));
  ProcessResult r = gate({"--baseline", file("none.json"), "--candidate", candidate});
  EXPECT_EQ(r.status, 4) << r.err;
  EXPECT_NE(r.err.find("error: there is no baseline"), std::string::npos) << r.err;
  EXPECT_EQ(verdict()["findings"][0]["code"], "missing-baseline");
  r = gate({"--baseline", candidate, "--candidate", file("none.json")});
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(verdict()["findings"][0]["code"], "unreadable");
}

TEST_F(GateCli, ABadCommandLineStillWritesAVerdict) {
  const std::string a = write("a.json", run_of("a"));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"--baseline", a},
           {"--baseline", a, "--candidate", a, "--threshold", "fast"},
           {"--baseline", a, "--candidate", a, "--confidence", "1.5"},
           {"--baseline", a, "--candidate", a, "--require-rows", "("},
           {"--baseline", a, "--candidate", a, "--threshold-file", file("none")},
           {"--baseline", a, "--candidate", a, "--control"},
           {"--baseline", a, "--candidate", a, "--", "mulmat"},
       }) {
    const ProcessResult r = gate(words);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0U) << r.err;
    EXPECT_EQ(verdict()["findings"][0]["code"], "command-line");
  }
  EXPECT_EQ(run_cudabk({"gate", "--baseline", a, "--candidate", a, "--verdict", folder_.path().string()}).status, 2);
}

TEST_F(GateCli, OptionsChangeTheOutcome) {
  const std::string a = write("a.json", run_of("a")), b = write("b.json", run_of("b", 1.05));
  EXPECT_EQ(gate({"--baseline", a, "--candidate", b}).status, 1);
  EXPECT_EQ(gate({"--baseline", a, "--candidate", b, "--threshold", "10%"}).status, 0);
  const std::string limits = folder_.write("limits", "m=256 20%\n").string();
  EXPECT_EQ(gate({"--baseline", a, "--candidate", b, "--threshold-file", limits}).status, 0);
  EXPECT_EQ(gate({"--baseline", a, "--candidate", b, "--threshold", "10%", "--require-rows", "7"}).status, 4);
  RunResult fewer = run_of("b");
  fewer.cases.pop_back();
  const std::string c = write("c.json", fewer);
  EXPECT_EQ(gate({"--baseline", a, "--candidate", c}).status, 4);
  EXPECT_EQ(gate({"--baseline", a, "--candidate", c, "--on-missing", "pass"}).status, 0);
  EXPECT_EQ(gate({"--baseline", c, "--candidate", a, "--on-missing", "allow-new"}).status, 0);
  RunResult other = run_of("b");
  other.environment.device.name = "NVIDIA B200";
  const std::string d = write("d.json", other);
  EXPECT_EQ(gate({"--baseline", a, "--candidate", d, "--force"}).status, 0);
}

TEST_F(GateCli, FoldersArePooled) {
  for (const char* side : {"a", "b"}) {
    for (const char* run : {"1", "2"}) {
      RunResult result = run_of(side, side[0] == 'b' ? 1.06 : 1);
      result.environment.started = "2026-01-0" + std::string(run) + "T03:04:05Z";  // else one would be a copy
      write(std::string(side) + "/" + run + ".json", result);
    }
  }
  const ProcessResult r = gate({"--baseline", file("a"), "--candidate", file("b")});
  EXPECT_EQ(r.status, 1) << r.out << r.err;
  EXPECT_EQ(verdict()["cases"][0]["baseline"]["samples"], 80);
}

TEST_F(GateCli, EveryOutputIsWritten) {
  const std::string a = write("a.json", run_of("a")), b = write("b.json", run_of("b", 1.05));
  const std::string summary = folder_.write("summary", "before\n").string();
  const ProcessResult r = run_cudabk({"gate", "--baseline", a, "--candidate", b, "--verdict", file("v.json"), "--md",
                                      file("v.md"), "--junit", file("v.xml"), "--github", "--confirm", "0"},
                                     {{{"GITHUB_STEP_SUMMARY", summary}}});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("::error title=cudabk%3A regressed::mul_mat type=q4_K m=256"), std::string::npos) << r.out;
  EXPECT_NE(read_file(file("v.md"))->find("| **regressed** |"), std::string::npos);
  EXPECT_NE(read_file(file("v.xml"))->find("failures=\"1\""), std::string::npos);
  EXPECT_EQ(read_file(summary)->rfind("before\n### ", 0), 0U);
  // compare shows the verdict again; it never fails on differences.
  const ProcessResult again = run_cudabk({"compare", file("v.json"), "--md", "-"});
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out, *read_file(file("v.md")));
  const ProcessResult colored = run_cudabk({"compare", a, b, "--color", "always"});
  EXPECT_EQ(colored.status, 0);
  EXPECT_NE(colored.out.find("\x1b[31mregressed"), std::string::npos) << colored.out;
  const Json json = Json::parse(run_cudabk({"compare", a, b, "--json", "-"}).out);
  EXPECT_EQ(json["counts"]["regressed"], 1);
}

TEST_F(GateCli, CompareRefusesWhatItCannotCompare) {
  const std::string a = write("a.json", run_of("a"));
  EXPECT_EQ(run_cudabk({"compare", a, file("none.json")}).status, 2);
  EXPECT_EQ(run_cudabk({"compare", a}).status, 2) << "a result is no verdict";
  RunResult other = run_of("b");
  other.environment.device.name = "NVIDIA B200";
  EXPECT_EQ(run_cudabk({"compare", a, write("b.json", other)}).status, 4);
}

// ---- with measuring, on the emulated device ----

const std::vector<std::string> kTinyBench{"--",  "mulmat",        "--type", "q4_K",       "-m", "16", "-k",
                                          "256", "--min-samples", "20",     "--max-time", "2s", "-n", "1"};

std::vector<std::string> with_bench(std::vector<std::string> words) {
  words.insert(words.end(), kTinyBench.begin(), kTinyBench.end());
  return words;
}

TEST_F(GateCli, ControlMeasuresThisBuildAgainstItself) {
  const ProcessResult r = gate(
      with_bench({"--control", "--rounds", "2", "--keep", file("kept"), "--threshold", "900%", "--device", "host"}));
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const Json json = verdict();
  EXPECT_EQ(json["counts"]["same"], 1) << json.dump(1);
  EXPECT_EQ(json["baseline"]["files"].size(), 2U);
  EXPECT_TRUE(json["options"]["judge_unchanged"]);
  EXPECT_TRUE(std::filesystem::exists(file("kept/round2-b.json")));
}

TEST_F(GateCli, AbMeasuresBothBuilds) {
  const ProcessResult r =
      gate(with_bench({"--ab", CUDABK_BINARY, "--rounds", "1", "--device", "host", "--threshold", "900%"}));
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_EQ(verdict()["counts"]["unchanged code"], 1);
  const ProcessResult none = gate(with_bench({"--ab", file("no-such-program")}));
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("cannot run"), std::string::npos) << none.err;
  const ProcessResult bad = gate({"--ab", CUDABK_BINARY, "--device", "host", "--", "nosuchop"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("nosuchop"), std::string::npos) << bad.err;
  EXPECT_EQ(verdict()["findings"][0]["code"], "measurement");
}

// A candidate measured here with doctored times is not confirmed; one of another build cannot be.
TEST_F(GateCli, SuspectsAreMeasuredAgain) {
  std::vector<std::string> bench(kTinyBench.begin() + 1, kTinyBench.end());
  bench.insert(bench.begin(), "bench");
  bench.insert(bench.end(), {"--device", "host", "--no-limits", "--json", file("base.json")});
  ASSERT_EQ(run_cudabk(bench).status, 0);
  RunResult slow = load_result(file("base.json"))->run;
  for (double& ns : slow.cases[0].samples_ns) {
    ns *= 200;
  }
  const std::string candidate = write("new.json", slow);
  const std::vector<std::string> words{
      "gate",        "--baseline", file("base.json"),   "--candidate", candidate,
      "--threshold", "900%",       "--judge-unchanged", "--verdict",   file("verdict.json")};
  const ProcessResult r = run_cudabk(words);
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("not confirmed: +"), std::string::npos) << r.out;
  EXPECT_EQ(verdict()["cases"][0]["confirmations"].size(), 2U);

  slow.cases[0].breakdown[0].code_hash = "sha256:other";
  write("new.json", slow);
  const ProcessResult other = run_cudabk(words);
  EXPECT_EQ(other.status, 1) << other.out << other.err;
  EXPECT_NE(other.out.find("could not measure again: this program's kernels are not the candidate's"),
            std::string::npos)
      << other.out;
}

TEST_F(GateCli, AnInterruptedMeasurementSaysSo) {
  ProcessOptions options;
  options.environment = {{"CUDABK_DEVICE", "host"}};
  options.interrupt_after_s = 1;
  const ProcessResult r =
      run_cudabk({"gate", "--control", "--verdict", file("verdict.json"), "--", "--suite", "all"}, options);
  EXPECT_EQ(r.status, 130) << r.out << r.err;
  EXPECT_EQ(verdict()["exit_status"], 130);
}

}  // namespace
}  // namespace cudabk::test
