// What is said, and on which stream.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "process.h"

namespace cudabk::test {
namespace {

// With a document on stdout, what is for people goes to stderr.
TEST(Messages, MergedProfileOnStdoutIsJson) {
  const auto profile = [](const std::string& family) {
    return R"({"schema": "cudabk-profile/1", "made_by": {}, "constants": {}, "evidence": {},
      "device": {"name": "*", "arch": "sm_80", "sm_count": 0, "l2_bytes": 0},
      "tables": {"mul_mat": {"*": [{"use": ")" +
           family + R"("}]}}})";
  };
  const std::string place =
      (std::filesystem::temp_directory_path() / ("cudabk_messages_test_" + std::to_string(getpid()))).string();
  const std::string a = place + "_a.json", b = place + "_b.json";
  ASSERT_TRUE(write_file_atomic(a, profile("mmvq")).ok());
  ASSERT_TRUE(write_file_atomic(b, profile("dequant_gemm")).ok());
  const ProcessResult r = run_cudabk({"profile", "merge", a, b, "-o", "-"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(nlohmann::json::parse(r.out, nullptr, false).is_object()) << r.out;
  EXPECT_NE(r.err.find("+ mul_mat * any: dequant_gemm"), std::string::npos) << r.err;
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

TEST(Messages, TestSaysWhyCasesWereSkipped) {
  const ProcessResult r = run_cudabk({"test", "mulmat", "--type", "f16", "--variant", "mmq"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("skipped 111, for example: "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("f16 is not a quantized type"), std::string::npos) << r.out;
}

// What a script passes for a variable that is not set stands neither for all nor for none.
TEST(Messages, EmptyValuesAreRefused) {
  const std::vector<std::vector<std::string>> commands = {
      {"kernels", "build", "--arch", ""},
      {"kernels", "list", "--arch", ""},
      {"kernels", "build", "--arch", "sm_80", "--filter", ""},
      {"kernels", "build", "--arch", "sm_80", "--time-limit", ""},
      {"explain", "mulmat", "--no-compile", "--arch", ""},
      {"bench", "mulmat", "--type", ""},
      {"bench", "mulmat", "--list", "--filter", ""},
      {"bench", "mulmat", "--list", "--shapes", ""},
      {"bench", "--list", "--suite", ""},
      {"bench", "mulmat", "--list", "--budget", ""},
      {"bench", "mulmat", "--list", "--device", ""},
      {"bench", "mulmat", "--list", "--profile", ""},
      {"bench", "mulmat", "--list", "--no-fuse", ""},
      {"bench", "mulmat", "--json", ""},
      {"test", ""},
      {"tune", "mulmat", "--type", ""},
      {"gate", "--baseline", "", "--candidate", "x.json"},
      {"report", ""},
  };
  for (const std::vector<std::string>& words : commands) {
    const ProcessResult r = run_cudabk(words);
    const std::string command = words[0] + " " + words[1];
    EXPECT_EQ(r.status, 2) << command << r.err;
    EXPECT_TRUE(r.err.starts_with("error: ")) << command << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << command << r.err;
    if (words.size() > 2 && words[words.size() - 2] == "--arch") {
      EXPECT_NE(r.err.find("valid: sm_75, sm_80"), std::string::npos) << r.err;
    }
  }
}

// A folder that nobody made is a misspelt one.
TEST(Messages, OutputFilesNeedTheirFolder) {
  const std::filesystem::path place =
      std::filesystem::temp_directory_path() / ("cudabk_folder_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(place);
  const std::string missing = (place / "missing").string(), file = missing + "/file";
  const std::vector<std::string> bench{"bench", "mulmat", "--type", "q8_0", "-m", "32", "-k", "64", "-n", "1"};
  std::vector<std::vector<std::string>> commands(5, bench);
  const char* const options[] = {"--json", "--jsonl", "--csv", "--md", "--junit"};
  for (size_t i = 0; i < std::size(options); ++i) {
    commands[i].insert(commands[i].end(), {options[i], file});
  }
  commands.push_back(bench);
  commands.back().push_back("--benchmark_out=" + file);
  commands.push_back({"test", "rms_norm", "--csv", file});
  commands.push_back({"list", "ops", "--json", file});
  commands.push_back({"info", "--json", file});
  commands.push_back({"explain", "mulmat", "--no-compile", "--json", file});
  commands.push_back({"profile", "show", "--json", file});
  commands.push_back({"tune", "mulmat", "--type", "q8_0", "--write", file});
  commands.push_back({"tune", "mulmat", "--type", "q8_0", "--journal", file, "--write", (place / "p.json").string()});
  commands.push_back({"gate", "--control", "--verdict", file});
  for (const std::vector<std::string>& words : commands) {
    const ProcessResult r = run_cudabk(words);
    const std::string command = words[0] + " ... " + words[words.size() - 2] + " " + words.back();
    EXPECT_EQ(r.status, 2) << command << r.err;
    EXPECT_NE(r.err.find("there is no folder " + missing), std::string::npos) << command << r.err;
    EXPECT_FALSE(std::filesystem::exists(missing)) << command;
  }
  std::filesystem::remove_all(place);
}

TEST(Messages, RowsOfTestAgreeWithTheirKeys) {
  const ProcessResult r = run_cudabk({"test", "rms_norm", "--json", "-"});
  EXPECT_EQ(r.status, 0) << r.err;
  const nlohmann::json rows = nlohmann::json::parse(r.out)["cases"];
  ASSERT_GT(rows.size(), 1U);
  for (const nlohmann::json& row : rows) {
    const std::string key = row["key"];
    for (const char* field : {"launch", "fusion", "cache"}) {
      EXPECT_NE(key.find(std::string(field) + "=" + row[field].get<std::string>()), std::string::npos) << key;
    }
  }
}

// Logs and pipes: whole lines, seldom.
TEST(Messages, ALongRunShowsSignsOfLifeWithoutATerminal) {
  ProcessOptions options;
  options.interrupt_when = "[2/3, ";
  const ProcessResult r = run_cudabk({"bench", "mulmat", "--type", "q8_0", "-m", "32", "-k", "64", "-n", "1,2,3",
                                      "--min-time", "10.2s", "--max-time", "10.3s", "--max-samples", "1000000"},
                                     options);
  EXPECT_EQ(r.status, 130) << r.err;
  EXPECT_NE(r.err.find("[2/3, "), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("[1/3"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find_first_of("\r\x1b"), std::string::npos) << r.err;
}

TEST(Messages, HelpOfBenchIsGrouped) {
  const std::string help = run_cudabk({"bench", "--help"}).out;
  size_t at = 0;
  for (const char* group :
       {"Which cases", "Shape", "Types", "Layout", "Operation", "Execution", "Measurement", "Output", "Everywhere"}) {
    const size_t found = help.find(std::string("\n\n") + group + ":\n");
    ASSERT_NE(found, std::string::npos) << group;
    EXPECT_GT(found, at) << group;
    at = found;
  }
  EXPECT_LT(std::count(help.begin(), help.end(), '\n'), 130);
}

TEST(Messages, ExplainNamesAListOnce) {
  const ProcessResult r = run_cudabk({"explain", "layer", "--type", "q4_K", "--tokens", "1", "--no-compile"});
  EXPECT_EQ(r.status, 0) << r.err;
  const auto times = [&r](const std::string& text) {
    size_t count = 0;
    for (size_t at = r.out.find(text); at != std::string::npos; at = r.out.find(text, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(times("\nnode      mul_mat#"), 3U) << r.out;
  EXPECT_EQ(times("mmvf: q4_K weights are not floats"), 1U) << r.out;
  EXPECT_EQ(times("\nothers    as for node mul_mat#"), 2U) << r.out;
}

TEST(Messages, ReportKeepsTheRemarkOnPacking) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("cudabk_packing_test_" + std::to_string(getpid()) + ".json")).string();
  const ProcessResult bench = run_cudabk({"bench", "mulmat", "--type", "q4_K", "-m", "32", "-k", "256", "-n", "1",
                                          "--layout", "frag", "--max-samples", "3", "--json", file});
  EXPECT_EQ(bench.status, 0) << bench.err;
  const ProcessResult report = run_cudabk({"report", file, "--md", "-"});
  EXPECT_EQ(report.status, 0) << report.err;
  const size_t said = bench.out.find("repack ");
  ASSERT_NE(said, std::string::npos) << bench.out;
  const std::string remark = bench.out.substr(said, bench.out.find_first_of(",\n", said) - said);
  EXPECT_NE(report.out.find(remark), std::string::npos) << remark << "\n" << report.out;
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace cudabk::test
