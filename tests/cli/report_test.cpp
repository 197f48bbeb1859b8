// cudabk report and cudabk replay from the command line: what is written, and the exit status of every situation.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "process.h"

namespace cudabk::test {
namespace {

namespace fs = std::filesystem;

class Reports : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cudabk_reports_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "empty");
    result_ = path("new.json");
    const ProcessResult bench = run_cudabk({"bench", "mulmat", "--type", "q4_0,f16", "-m", "32", "-k", "64", "-n",
                                            "1,2,4", "--max-samples", "20", "--min-samples", "20", "--json", result_});
    ASSERT_EQ(bench.status, 0) << bench.err;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    Result<std::string> text = read_file(folder_ / name);
    return text.ok() ? std::move(text).value() : "";
  }
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file_atomic(folder_ / name, text).ok());
  }

  fs::path folder_;
  std::string result_;
};

TEST_F(Reports, WritesEveryFormatAtOnce) {
  const ProcessResult run =
      run_cudabk({"report",          result_,         "--html",      path("r.html"),       "--csv",
                  path("r.csv"),     "--junit",       path("r.xml"), "--google-benchmark", path("gb.json"),
                  "--github-action", path("ga.json"), "--bencher",   path("b.json"),       "--sql",
                  path("r.sql"),     "--md",          "-",           "--baseline",         result_});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(content("r.html").rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(run.out.find("| q4_0 |"), std::string::npos);
  EXPECT_NE(run.out.find("Against the baseline"), std::string::npos);
  EXPECT_NE(content("r.sql").find("INSERT INTO test_backend_ops"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(content("b.json")).size(), 6U);
  EXPECT_EQ(nlohmann::json::parse(content("ga.json")).size(), 6U);
  EXPECT_NE(content("r.csv").find("q4_0"), std::string::npos);
  EXPECT_NE(content("r.xml").find("<testsuite"), std::string::npos);
}

TEST_F(Reports, TheStatusSaysWhatIsWrong) {
  const std::string whole = content("new.json");
  write("cut.json", whole.substr(0, whole.size() / 2));
  std::string edited = whole;
  edited.replace(edited.find("\"complete\": true"), 16, "\"complete\": false");
  write("edited.json", edited);
  write("journal.jsonl", "{\"begin\":1}\n{\"stage\":\"screen\"\n");
  const std::string journal = std::string(CUDABK_TEST_DATA) + "/journal/h200-q4_K.jsonl";
  const struct {
    std::vector<std::string> arguments;
    int status;
    std::string says;
  } situations[] = {
      {{"report"}, 2, "results"},
      {{"report", path("none.json")}, 2, "none.json"},
      {{"report", path("cut.json"), "--md", "-"}, 2, "cut.json"},
      {{"report", path("edited.json"), "--md", "-"}, 2, "digest"},
      {{"report", path("empty"), "--md", "-"}, 4, "empty"},
      {{"report", result_, "--md", "-", "--csv", "-"}, 2, "stdout"},
      {{"report", result_, "--md", "-", "--baseline", path("none.json")}, 2, "none.json"},
      {{"report", result_, "--md", "-", "--baseline", result_, "--threshold", "x"}, 2, "--threshold"},
      {{"replay"}, 2, "file"},
      {{"replay", path("none.json")}, 2, "none.json"},
      {{"replay", path("cut.json")}, 2, "cut.json"},
      {{"replay", path("empty")}, 4, "empty"},
      {{"replay", result_, "--regret", "3%"}, 2, "journal"},
      {{"replay", result_, "--confidence", "2"}, 2, "--confidence"},
      {{"replay", result_, "--baseline", path("none.json")}, 2, "none.json"},
      {{"replay", result_, "--baseline", result_, "--threshold", "1%,x"}, 2, "--threshold"},
      {{"replay", path("journal.jsonl")}, 2, "no timing"},
      {{"replay", journal, "--write", path("p.json")}, 2, "--regret"},
      {{"replay", journal, "--strategy", "guess"}, 2, "guess"},
      {{"replay", journal, "--strategy", "halving", "--top", "0"}, 2, "--top"},
      {{"replay", journal, "--regret", "x"}, 2, "--regret"},
  };
  for (const auto& s : situations) {
    const ProcessResult run = run_cudabk(s.arguments);
    std::string line;
    for (const std::string& word : s.arguments) {
      line += word + " ";
    }
    EXPECT_EQ(run.status, s.status) << line << run.err;
    EXPECT_NE(run.err.find(s.says), std::string::npos) << line << run.err;
  }
}

TEST_F(Reports, ReplaysAResultAndAJournal) {
  const ProcessResult statistics = run_cudabk({"replay", result_, "--precision", "50%", "--json", path("s.json")});
  EXPECT_EQ(statistics.status, 0) << statistics.err;
  EXPECT_EQ(nlohmann::json::parse(content("s.json"))["statistics"]["cases"].size(), 6U);
  const ProcessResult verdicts = run_cudabk({"replay", result_, "--baseline", result_, "--threshold", "1%,5%"});
  EXPECT_EQ(verdicts.status, 0) << verdicts.err;
  EXPECT_NE(verdicts.out.find("unchanged code"), std::string::npos);
  const std::string journal = std::string(CUDABK_TEST_DATA) + "/journal/h200-q4_K.jsonl";
  const ProcessResult fit = run_cudabk({"replay", journal, "--regret", "5%", "--write", path("p.json")});
  EXPECT_EQ(fit.status, 0) << fit.err;
  const ProcessResult lint = run_cudabk({"profile", "lint", path("p.json")});
  EXPECT_EQ(lint.status, 0) << lint.err << lint.out;
  const ProcessResult simulation =
      run_cudabk({"replay", journal, "--strategy", "halving", "--rounds", "1", "--json", "-"});
  EXPECT_EQ(simulation.status, 0) << simulation.err;
  EXPECT_EQ(nlohmann::json::parse(simulation.out)["simulation"].size(), 1U);
}

TEST_F(Reports, HelpHasExamples) {
  for (const char* command : {"report", "replay"}) {
    const ProcessResult help = run_cudabk({command, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find(std::string("Examples:\n  cudabk ")), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace cudabk::test
