#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/result.h"
#include "core/file.h"
#include "json_schema.h"
#include "process.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

// One small case, few samples.
std::vector<std::string> small_bench(std::vector<std::string> more = {}) {
  std::vector<std::string> words{"bench", "mulmat", "--type", "q4_K",          "-m", "32",         "-k",
                                 "256",   "-n",     "1",      "--max-samples", "3",  "--max-time", "200ms"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

size_t lines_in(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

void expect_valid(const std::string& document) {
  const Json json = Json::parse(document, nullptr, false);
  ASSERT_TRUE(json.is_object()) << document;
  const std::vector<std::string> faults = SchemaChecker(Json::parse(*read_file(CUDABK_SCHEMA))).check(json);
  for (const std::string& fault : faults) {
    ADD_FAILURE() << fault;
  }
  EXPECT_EQ(json["digest"], *digest_of_result(document));
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("cudabk_cli_test_" + std::to_string(getpid()) + name)).string();
}

TEST(Cli, HelpAndVersionExitZero) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--help"},
                                                                                     {"--version"},
                                                                                     {"bench", "--help"},
                                                                                     {"test", "--help"},
                                                                                     {"list", "--help"},
                                                                                     {"info", "--help"}}) {
    const ProcessResult r = run_cudabk(words);
    EXPECT_EQ(r.status, 0) << words[0] << r.err;
    EXPECT_FALSE(r.out.empty());
    EXPECT_EQ(r.err, "");
  }
  EXPECT_NE(run_cudabk({"bench", "--help"}).out.find("cudabk bench mulmat --type q4_K"), std::string::npos);
}

struct BadInput {
  std::vector<std::string> words;
  int status;
  const char* expected;  // in the error line
};

TEST(Cli, BadInputIsOneLineAndAStatus) {
  const BadInput table[] = {
      {{}, 2, "commands: "},
      {{"benhc"}, 2, "did you mean bench?"},
      {{"bench"}, 2, "ops: mul_mat (mulmat)"},
      {{"bench", "mulmatt"}, 2, "mulmat"},
      {{"bench", "mulmat", "--typ", "q4_K"}, 2, "did you mean --type?"},
      {{"bench", "mulmat", "--type", "q9_K"}, 2, "valid: f32"},
      {{"bench", "mulmat", "--type", "q4_K", "-k", "100"}, 2, "not a multiple of 256"},
      {{"bench", "mulmat", "-m", "-4"}, 2, "negative"},
      {{"bench", "mulmat", "-n", ""}, 2, "-n"},
      {{"bench", "mulmat", "-m", "99999999999999999999"}, 2, "2^63"},
      {{"bench", "mulmat", "-m", "9223372036854775807"}, 2, "outside"},
      {{"bench", "mulmat", "-m", "2147483647", "-n", "2147483647", "-k", "2147483392", "--axis", "b2=2147483647"},
       2,
       ""},
      {{"bench", "mulmat", "--launch", "sometimes"},
       2,
       "--launch: unknown value 'sometimes'; valid: graph, eager, both"},
      {{"bench", "mulmat", "--type", "Q8_k"},
       2,
       "--type: q8_K is a format of activations, not of weights; valid: f32, "},
      {{"tune", "mulmat", "--type", "tq1_0"}, 2, "--type: tq1_0 is a format that no kernel takes yet; valid: f32, "},
      {{"bench", "add", "--type", "q4_K"}, 2, "--type: q4_K is no type that add takes here; valid: f32, f16"},
      {{"tune", "mulmat", "--margin", "5"}, 2, "--margin: \"5\": expected a share"},
      {{"test", "--type", "q9_K"}, 2, "valid: f32, f16, bf16, q4_0"},
      {{"tune", "mulmat", "--write", "/dev/null/x.json"}, 2, "/dev/null is no folder"},
      {{"tune", "mulmat", "--json", "/dev/null/x.json", "--dry-run"}, 2, "/dev/null is no folder"},
      {{"tune", "rms_norm"}, 2, "ops that can be tuned: mul_mat"},
      {{"tune", "mulmat", "--strategy", "luck"}, 2, "valid: halving, exhaustive"},
      {{"explain", "mulmat", "--varian", "mmq"}, 2, "(did you mean --variant?); see cudabk explain --help"},
      {{"explain", "mulmat", "--variant", "all"}, 2, "cudabk list variants"},
      {{"explain", "mulmat", "--variant", "mmx"}, 2, "valid: auto, "},
      {{"info", "--jsn"}, 2, "(did you mean --json?); options: --help, "},
      {{"gate", "--confirm", "2.5", "--verdict", "/dev/null"}, 2, "'2.5' is no whole number from 0 to 100"},
      {{"test", "mulmat", "--type", "q4_K", "-n", "12345"}, 4, " test cases has these values"},
      {{"bench", "mulmat", "--variant", "mmvx"}, 2, "mmvq"},
      {{"bench", "mulmat", "--variant", "mmvx"}, 2, "'FAMILY:rows=1,warps=4'"},
      {{"bench", "mulmat", "--variant", "mmvq rows=1 heads=4"}, 2, "'FAMILY rows=1 warps=4'"},
      {{"bench", "mulmat", "--variant", "mmvq rows=7"}, 2, "valid: 1, 2, 4"},
      {{"bench", "mulmat", "--budget", "0s"}, 2, "--budget: '0s' leaves no time"},
      {{"tune", "mulmat", "--budget", "0ms"}, 2, "--budget: '0ms' leaves no time"},
      {{"bench", "mulmat", "--tag", "a=1", "--tag", "b=1", "--tag", "a=2"}, 2, "--tag: 'a' was given twice"},
      {{"bench", "mulmat", "--shapes", "gpt-9"}, 2, "llama-3.1-8b"},
      {{"bench", "mulmat", "--dist", "cauchy"}, 2, "--dist"},
      {{"bench", "mulmat", "--no-fuse", "magic"}, 2, "rms_norm_mul"},
      {{"bench", "mulmat", "--precision", "x"}, 2, "--precision"},
      {{"bench", "mulmat", "--max-time", "soon"}, 2, "--max-time"},
      {{"bench", "mulmat", "--filter", "("}, 2, "regular expression"},
      {{"bench", "mulmat", "--filter", "nothing like this"}, 4, "nothing selected"},
      {{"bench", "--suite", "smok"}, 2, "smoke"},
      {{"bench", "mulmat", "--device", "tpu:0"}, 2, "tpu"},
      {{"bench", "mulmat", "--json", "-", "--csv", "-"}, 2, "stdout"},
      {{"bench", "mulmat", "--profile", "/no/such/file.json"}, 2, "/no/such/file.json"},
      {{"bench", "mulmatt", "--device", "auto"}, 2, "mulmat"},  // no notice about the device either
      {{"bench", "mulmat", "--suite", "smoke"}, 2, "--suite"},
      {{"bench", "mulmat", "--seed", "-1"}, 2, "2^64"},
      {{"bench", "mulmat", "--seed", "99999999999999999999"}, 2, "2^64"},
      {{"bench", "mulmat", "--max-samples", "0"}, 2, "1"},
      {{"bench", "mulmat", "--json", ""}, 2, "--json"},
      {{"bench", "mulmat", "--json", "/tmp"}, 2, "folder"},
      {{"bench", "mulmat", "--csv", "/dev/null/x.csv"}, 2, "no folder"},
      {{"test", "mulmatt"}, 2, "rms_norm"},
      {{"test", "mulmat", "--type", "q9_K"}, 2, "valid: f32"},
      {{"test", "mulmat", "--filter", "nothing like this"}, 4, "nothing selected"},
      {{"list"}, 2, "needs what (ops, types"},
      {{"explain"}, 2, "ops: mul_mat (mulmat)"},
      {{"compare"}, 2, "needs baseline ("},
      {{"compare", "/dev/null"}, 2, "two results are compared"},
      {{"explain", "mulmat", "--arch", "sm_91"}, 2, "unknown architecture 'sm_91'; valid: sm_75, "},
      {{"kernels", "list", "--arch", "sm_91"}, 2, "unknown architecture 'sm_91'; valid: sm_75, "},
      {{"report"}, 2, "needs results ("},
      {{"list", "opps"}, 2, "ops, types"},
  };
  for (const BadInput& bad : table) {
    const ProcessResult r = run_cudabk(bad.words);
    std::string command;
    for (const std::string& word : bad.words) {
      command += word + " ";
    }
    EXPECT_EQ(r.status, bad.status) << command << r.err;
    EXPECT_EQ(lines_in(r.err), 1U) << command << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0U) << command << r.err;
    EXPECT_NE(r.err.find(bad.expected), std::string::npos) << command << r.err;
    EXPECT_EQ(r.out, "") << command;
  }
}

TEST(Cli, AMissingGpuIsUnfit) {
  const ProcessResult r = run_cudabk(small_bench({"--device", "cuda:0"}), {{{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(r.status, 6) << r.err;
  EXPECT_EQ(r.err.rfind("error: ", 0), 0U) << r.err;
  EXPECT_EQ(run_cudabk({"info", "--check"}).status, 6);
}

TEST(Cli, WithoutAGpuTheEmulatedDeviceServesWithANotice) {
  const ProcessResult r = run_cudabk(small_bench({"--device", "auto"}), {{{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(lines_in(r.err), 1U) << r.err;
  EXPECT_NE(r.err.find("emulated"), std::string::npos);
}

TEST(Cli, BenchPrintsARowPerCase) {
  const ProcessResult r =
      run_cudabk({"bench", "mulmat", "--type", "q4_K", "-m", "32", "-k", "256", "-n", "1,8", "--max-samples", "3"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("GB/s"), std::string::npos);
  EXPECT_NE(r.out.find("frag_vector"), std::string::npos) << r.out;
}

TEST(Cli, StdoutHoldsOnlyTheDocument) {
  for (const char* locale : {"C", "de_DE.UTF-8"}) {
    const ProcessResult r = run_cudabk(small_bench({"--json", "-", "-v"}), {{{"LC_ALL", locale}, {"LANG", locale}}});
    EXPECT_EQ(r.status, 0) << r.err;
    expect_valid(r.out);
    EXPECT_NE(r.err.find("GB/s"), std::string::npos);  // the table goes to stderr
    const Json json = Json::parse(r.out);
    ASSERT_EQ(json["cases"].size(), 1U);
    EXPECT_EQ(json["cases"][0]["status"], "ok");
    EXPECT_TRUE(json["cases"][0]["check"]["passed"].get<bool>());
    EXPECT_GT(json["cases"][0]["figures"]["time_ns"].get<double>(), 0);
    EXPECT_FALSE(json["cases"][0]["kernels"].empty());
  }
  const ProcessResult csv = run_cudabk(small_bench({"--csv", "-"}));
  EXPECT_EQ(csv.out.rfind("target,", 0), 0U);
  EXPECT_EQ(lines_in(csv.out), 2U) << csv.out;
}

TEST(Cli, SeveralOutputsAtOnce) {
  const std::string json = temporary(".json"), csv = temporary(".csv"), md = temporary(".md"), xml = temporary(".xml");
  const ProcessResult r = run_cudabk(small_bench({"--json", json, "--csv", csv, "--md", md, "--junit", xml}));
  EXPECT_EQ(r.status, 0) << r.err;
  expect_valid(*read_file(json));
  for (const std::string& file : {json, csv, md, xml}) {
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
    std::filesystem::remove(file);
  }
}

TEST(Cli, DevicesAndLinksAreWrittenToNotReplaced) {
  const std::string pipe = temporary(".pipe"), link = temporary(".link"), target = temporary(".target.json");
  std::filesystem::create_symlink("/dev/null", pipe);
  ASSERT_TRUE(write_file_atomic(target, "old").ok());
  std::filesystem::create_symlink(target, link);
  const ProcessResult r = run_cudabk(small_bench({"--csv", pipe, "--json", link}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(std::filesystem::is_symlink(pipe));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  expect_valid(*read_file(target));
  for (const std::string& file : {pipe, link, target}) {
    std::filesystem::remove(file);
  }
}

TEST(Cli, ARowsCommandReproducesIt) {
  const ProcessResult r = run_cudabk(small_bench({"--json", "-", "--launch", "eager", "--seed", "7"}));
  const Json row = Json::parse(r.out)["cases"][0];
  std::vector<std::string> words;
  const std::string command = row["command"].get<std::string>();
  for (size_t begin = command.find(' ') + 1; begin < command.size();) {
    const size_t end = std::min(command.find(' ', begin), command.size());
    words.push_back(command.substr(begin, end - begin));
    begin = end + 1;
  }
  words.insert(words.end(), {"--json", "-", "--max-samples", "2"});
  const ProcessResult again = run_cudabk(words);
  ASSERT_EQ(again.status, 0) << command << again.err;
  const Json other = Json::parse(again.out)["cases"][0];
  EXPECT_EQ(other["key"], row["key"]);
  EXPECT_EQ(other["check"]["nmse"], row["check"]["nmse"]);  // the same data
}

TEST(Cli, InterruptKeepsWhatIsDone) {
  const std::string json = temporary("_interrupted.json");
  ProcessOptions options;
  options.interrupt_when = "frag_vector";  // the first row
  const ProcessResult r = run_cudabk({"bench", "mulmat", "-m", "64", "-k", "512", "-n", "1:400", "--json", json,
                                      "--max-samples", "3", "--max-time", "100ms"},
                                     options);
  EXPECT_EQ(r.status, 130) << r.err;
  const Result<std::string> text = read_file(json);
  ASSERT_TRUE(text.ok());
  expect_valid(*text);
  const Json document = Json::parse(*text);
  EXPECT_FALSE(document["complete"].get<bool>());
  EXPECT_GE(document["cases"].size(), 1U);
  EXPECT_LT(document["cases"].size(), 400U);
  std::filesystem::remove(json);
}

// In the midst of a kernel that takes many seconds.
TEST(Cli, AnInterruptEndsALongEmulatedKernel) {
  ProcessOptions options;
  options.interrupt_after_s = 2;
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult r = run_cudabk(
      {"bench", "mulmat", "--type", "q4_K", "-m", "2048", "-k", "4096", "-n", "4096", "--check", "off", "--json", "-"},
      options);
  EXPECT_EQ(r.status, 130) << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  expect_valid(r.out);
  EXPECT_FALSE(Json::parse(r.out)["complete"].get<bool>());
  EXPECT_EQ(r.err.find("error: "), std::string::npos) << r.err;
}

TEST(Cli, TestComparesWithTheReference) {
  const ProcessResult r = run_cudabk({"test", "mulmat", "--type", "q4_K", "-n", "1", "-m", "16", "--json", "-"});
  EXPECT_EQ(r.status, 0) << r.err;
  expect_valid(r.out);
  EXPECT_NE(r.err.find("seed 42"), std::string::npos);
  const Json document = Json::parse(r.out);
  size_t compared = 0;
  for (const Json& row : document["cases"]) {
    compared += row["status"] == "ok" && row["check"]["elements"].get<int64_t>() > 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 3U);
}

// Of all ops, those that know the type.
TEST(Cli, TestOfAllOpsTakesATypeOfSome) {
  const ProcessResult r = run_cudabk({"test", "--type", "q4_K", "--list"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("mul_mat type=q4_K "), std::string::npos);
  EXPECT_NE(r.out.find("get_rows type=q4_K "), std::string::npos);
  EXPECT_EQ(r.out.find("type=f32"), std::string::npos);
}

TEST(Cli, FusionGraphsPass) {
  const ProcessResult r = run_cudabk({"test", "fusion", "--variant", "auto"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("fusion"), std::string::npos);
}

TEST(Cli, ListsAndInfo) {
  for (const char* what : {"ops", "types", "variants", "suites", "shapes", "fusions"}) {
    const ProcessResult text = run_cudabk({"list", what});
    EXPECT_EQ(text.status, 0) << what << text.err;
    EXPECT_GT(lines_in(text.out), 2U) << what;
    const ProcessResult json = run_cudabk({"list", what, "--json", "-"});
    EXPECT_EQ(json.status, 0) << what << json.err;
    EXPECT_FALSE(Json::parse(json.out)["entries"].empty()) << what;
  }
  const ProcessResult info = run_cudabk({"info", "--json", "-"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(Json::parse(info.out)["schema"], "cudabk-info/1");
}

TEST(Cli, ColorsOnlyWhenAskedFor) {
  const ProcessResult plain = run_cudabk(small_bench());
  EXPECT_EQ(plain.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(plain.err.find('\x1b'), std::string::npos);
  const ProcessResult off = run_cudabk(small_bench(), {{{"NO_COLOR", "1"}}});
  EXPECT_EQ(off.out.find('\x1b'), std::string::npos);
}

TEST(Cli, QuietSaysNothingOnStderr) {
  const ProcessResult r = run_cudabk(small_bench({"--quiet"}));
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.err, "");
}

TEST(Cli, ListOfCasesRunsNothing) {
  const ProcessResult r = run_cudabk({"bench", "mulmat", "--type", "q4_K,q6_K", "-n", "1:4*2", "--list"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(lines_in(r.out), 6U) << r.out;
  EXPECT_EQ(last_line(r.out).rfind("mul_mat type=q6_K m=256 n=4", 0), 0U) << r.out;
}

TEST(Cli, AFullStdoutIsAnError) {
  ProcessOptions full;
  full.stdout_file = "/dev/full";
  for (const std::vector<std::string>& words :
       {small_bench(), small_bench({"--json", "-"}), {"list", "ops"}, {"bench", "--help"}}) {
    const ProcessResult r = run_cudabk(words, full);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_NE(r.err.find("error: cannot write to standard output"), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("standard output"), r.err.rfind("standard output")) << r.err;  // once
  }
}

TEST(Cli, AVariantIsTakenAsTablesPrintIt) {
  const ProcessResult printed = run_cudabk(small_bench({"--variant", "mmvq rows=2 warps=4", "--json", "-"}));
  const ProcessResult written = run_cudabk(small_bench({"--variant", "mmvq:rows=2,warps=4", "--json", "-"}));
  ASSERT_EQ(printed.status, 0) << printed.err;
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_NE(printed.err.find("mmvq rows=2 warps=4"), std::string::npos) << printed.err;
  EXPECT_EQ(Json::parse(printed.out)["cases"][0]["key"], Json::parse(written.out)["cases"][0]["key"]);
}

TEST(Cli, AProductOverNothingIsZero) {
  const ProcessResult r = run_cudabk(
      {"bench", "mulmat", "--type", "q4_K", "-m", "32", "-k", "0", "-n", "1,64", "--max-samples", "3", "--json", "-"});
  ASSERT_EQ(r.status, 0) << r.err;
  const Json document = Json::parse(r.out);
  ASSERT_EQ(document["cases"].size(), 2U);
  for (const Json& row : document["cases"]) {
    EXPECT_EQ(row["status"], "ok");
    EXPECT_TRUE(row["check"]["passed"].get<bool>());
    EXPECT_GT(row["check"]["elements"].get<int64_t>(), 0);
  }
}

TEST(Cli, TuneLeavesFilesThatAreNoProfilesAlone) {
  const std::string file = temporary("_notes.txt");
  for (const std::string text : {"my notes\n", "{\"schema\": \"cudabk-result/1\"}", ""}) {
    ASSERT_TRUE(write_file_atomic(file, text).ok());
    const ProcessResult r = run_cudabk({"tune", "mulmat", "--type", "q4_K", "-m", "64", "-k", "256", "-n", "1",
                                        "--journal", temporary("_journal.jsonl"), "--write", file});
    EXPECT_EQ(r.status, 2) << text << r.err;
    EXPECT_EQ(lines_in(r.err), 1U) << r.err;
    EXPECT_NE(r.err.find("--write: " + file), std::string::npos) << r.err;
    EXPECT_EQ(*read_file(file), text);
    EXPECT_FALSE(std::filesystem::exists(file + ".corrupt"));
  }
  std::filesystem::remove(file);
}

TEST(Cli, BenchWarnsOnceOfAStaleRule) {
  const std::string file = temporary("_stale.json");
  const std::string profile = R"({"schema": "cudabk-profile/1", "made_by": {}, "constants": {}, "evidence": {},
    "device": {"name": "*", "arch": "sm_80", "sm_count": 0, "l2_bytes": 0},
    "tables": {"mul_mat": {"*": [{"n": [1, 8], "use": "mmvq", "code": "sha256:)" +
                              std::string(64, '0') + R"("}, {"use": "dequant_gemm"}]}}})";
  ASSERT_TRUE(write_file_atomic(file, profile).ok());
  const std::vector<std::string> words{"bench", "mulmat", "--type", "q4_K",          "-m", "32",        "-k",
                                       "256",   "-n",     "1,8",    "--max-samples", "3",  "--profile", file};
  const ProcessResult r = run_cudabk(words);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(lines_in(r.err), 1U) << r.err;
  EXPECT_NE(r.err.find("warning: " + file + ": 1 of the rules used is stale"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("n 1..8: mmvq"), std::string::npos) << r.err;
  std::vector<std::string> unused = words;
  unused[9] = "64";  // decided by the rule without a hash
  EXPECT_EQ(run_cudabk(unused).err, "");
  std::vector<std::string> forced = words;
  forced.insert(forced.end(), {"--variant", "mmvq"});
  EXPECT_EQ(run_cudabk(forced).err, "");
  std::filesystem::remove(file);
}

TEST(Cli, ListsVariantsOfBothLayouts) {
  const ProcessResult r = run_cudabk({"list", "variants"});
  EXPECT_EQ(r.status, 0) << r.err;
  for (const std::string family : {"frag_vector", "frag_wide", "mmvq"}) {
    const size_t begin = r.out.find(" " + family + " ");
    ASSERT_NE(begin, std::string::npos) << r.out;
    const std::string line = r.out.substr(begin, r.out.find('\n', begin) - begin);
    EXPECT_TRUE(line.ends_with(" yes")) << line;
  }
  EXPECT_NE(r.out.find("no: needs warp-group products of sm_90a"), std::string::npos) << r.out;
}

// What only a GPU can run is chosen for one that is not here; a profile of one card says which.
TEST(Cli, ExplainsForAnAbsentGpu) {
  const std::vector<std::string> words = {"explain", "mulmat", "--type", "q4_K",   "-m",     "4096",        "-k",
                                          "14336",   "-n",     "64",     "--arch", "sm_90a", "--no-compile"};
  const ProcessResult any = run_cudabk(words);
  EXPECT_EQ(any.status, 0) << any.err;
  EXPECT_NE(any.out.find("device    any sm_90a GPU"), std::string::npos) << any.out;
  EXPECT_NE(any.out.find("variant   frag_tile "), std::string::npos) << any.out;
  const std::string file = temporary("_absent.json");
  const std::string profile = R"({"schema": "cudabk-profile/1", "made_by": {}, "constants": {}, "evidence": {},
    "device": {"name": "Some Card", "arch": "sm_90a", "sm_count": 7, "l2_bytes": 1048576},
    "tables": {"mul_mat": {"*": [{"use": "dequant_gemm"}]}}})";
  ASSERT_TRUE(write_file_atomic(file, profile).ok());
  std::vector<std::string> card = words;
  card.insert(card.end(), {"--profile", file});
  const ProcessResult one = run_cudabk(card);
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find("device    Some Card (sm_90a, 7 SMs)"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("variant   dequant_gemm"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("narrow bf16: narrow_pieces<DType::bf16>"), std::string::npos) << one.out;
  std::filesystem::remove(file);
}

TEST(Cli, ExplainsAVariantThatTheTableDoesNotName) {
  const ProcessResult r =
      run_cudabk({"explain", "mulmat", "--type", "q4_K", "-n", "16", "--variant", "mmq:tile_n=16", "--no-compile"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("device    emulated sm_80 (108 SMs)"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("layout    weights raw, 9.4 MB: mmq reads it"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("rule      none: asked for by name"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("variant   mmq split=4 tile_m=64 tile_n=16"), std::string::npos) << r.out;
  const ProcessResult no = run_cudabk({"explain", "mulmat", "--type", "f32", "--variant", "mmq", "--no-compile"});
  EXPECT_EQ(no.status, 2) << no.out;
  EXPECT_NE(no.err.find("mmq cannot run: f32 is not a quantized type"), std::string::npos) << no.err;
}

// Emulated, too: products by warp groups; not several blocks that work together.
TEST(Cli, BenchesProductsByWarpGroups) {
  const auto bench = [](const char* type, const char* variant) {
    return run_cudabk({"bench", "mulmat", "--device", "host@sm_90a", "--type", type, "-m", "64", "-k", "256", "-n",
                       "33", "--variant", variant, "--max-samples", "3"});
  };
  for (const auto& [type, family] : {std::pair{"q4_K", "frag_tile"}, std::pair{"bf16", "mmsf_group"}}) {
    const ProcessResult r = bench(type, family);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find(std::string("  ") + family + " c"), std::string::npos) << r.out;
  }
  EXPECT_NE(bench("q4_K", "frag_tile:cluster=2").err.find("clusters of blocks are not emulated"), std::string::npos);
  EXPECT_NE(bench("q8_0", "frag_tile:cols=32,groups=4").err.find("kernels/frag/instances.txt"), std::string::npos);
}

TEST(Cli, ListsAlignNumbersAndSayWhatTypesAre) {
  const ProcessResult r = run_cudabk({"list", "types"});
  EXPECT_NE(r.out.find("\nf32          1      4           32  yes "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("no: a format of activations, not of weights"), std::string::npos) << r.out;
}

TEST(Cli, ASingleSampleHasNoNoise) {
  std::vector<std::string> words = small_bench();
  words[11] = "1";
  const ProcessResult r = run_cudabk(words);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.find("0.0 %"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("few samples"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.rfind("emulated sm_80, 108 SMs, ", 0), 0U) << r.out;
}

TEST(Cli, ExplainCountsLaunches) {
  const ProcessResult one = run_cudabk({"explain", "add", "--no-compile"});
  EXPECT_NE(one.out.find(", 1 launch "), std::string::npos) << one.out;
  const ProcessResult two = run_cudabk({"explain", "mulmat", "--type", "q4_K", "-n", "4", "--no-compile"});
  EXPECT_NE(two.out.find(", 2 launches "), std::string::npos) << two.out;
}

}  // namespace
}  // namespace cudabk::test
