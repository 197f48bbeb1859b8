#include "measure/google_benchmark.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file.h"

namespace cudabk {
namespace {

struct Fixture {
  int calls = 0;
  std::vector<BenchmarkCase> cases;
  std::ostringstream out, err;

  Fixture() {
    add("mul_mat/q4_K/n:1", {1000, 1100, 1200});
    add("mul_mat/q4_K/n:8", {2000});
    add("mul_mat/q6_K/n:1", {3000, 3000, 3000, 3300});
  }
  void add(std::string name, std::vector<double> ns) {
    cases.push_back({std::move(name), [this, ns]() -> Result<BenchmarkSamples> {
                       ++calls;
                       return BenchmarkSamples{ns, {{"GB/s", 4000}, {"bad", std::nan("")}}, "mmvq"};
                     }});
  }
};

BenchmarkFlags flags_of(const std::vector<std::string>& arguments) {
  auto flags = parse_benchmark_flags(arguments);
  EXPECT_TRUE(flags.ok()) << flags.error().message;
  return *flags;
}

TEST(GoogleBenchmark, JsonHoldsEverySampleUnderThePlainName) {
  Fixture f;
  const auto ran = run_google_benchmark(f.cases, flags_of({"--benchmark_format=json"}), f.out, f.err);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(*ran, 3);
  EXPECT_EQ(f.calls, 3);
  const auto document = nlohmann::json::parse(f.out.str());
  std::vector<double> times;
  double median = 0;
  for (const auto& b : document["benchmarks"]) {
    if (b["run_name"] != "mul_mat/q4_K/n:1") {
      continue;
    }
    EXPECT_EQ(b["time_unit"], "ns");
    if (b["run_type"] == "iteration") {
      EXPECT_EQ(b["name"], "mul_mat/q4_K/n:1");
      EXPECT_EQ(b["iterations"], 1);
      EXPECT_DOUBLE_EQ(b["GB/s"].get<double>(), 4000);
      EXPECT_FALSE(b.contains("bad"));
      EXPECT_EQ(b["label"], "mmvq");
      EXPECT_EQ(b["cpu_time"], b["real_time"]);
      times.push_back(b["real_time"]);
    } else if (b["aggregate_name"] == "median") {
      median = b["real_time"];
    }
  }
  ASSERT_EQ(times.size(), 3U);
  EXPECT_NEAR(times[0], 1000, 1e-6);
  EXPECT_NEAR(times[2], 1200, 1e-6);
  EXPECT_NEAR(median, 1100, 1e-6);
}

TEST(GoogleBenchmark, FilterSelectsBeforeAnythingRuns) {
  Fixture f;
  const auto ran = run_google_benchmark(f.cases, flags_of({"--benchmark_filter=q4_K/n:1$"}), f.out, f.err);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(*ran, 1);
  EXPECT_EQ(f.calls, 1);
  EXPECT_NE(f.out.str().find("mul_mat/q4_K/n:1_median"), std::string::npos) << f.out.str();
  EXPECT_EQ(f.out.str().find("q6_K"), std::string::npos);

  Fixture g;
  EXPECT_EQ(*run_google_benchmark(g.cases, flags_of({"--benchmark_filter=-q4_K"}), g.out, g.err), 1);
  EXPECT_NE(g.out.str().find("q6_K"), std::string::npos);

  Fixture h;
  const auto none = run_google_benchmark(h.cases, flags_of({"--benchmark_filter=q9"}), h.out, h.err);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kNothing);
  EXPECT_EQ(h.calls, 0);
}

TEST(GoogleBenchmark, ListsWithoutRunning) {
  Fixture f;
  ASSERT_TRUE(
      run_google_benchmark(f.cases, flags_of({"--benchmark_list_tests", "--benchmark_filter=n:1"}), f.out, f.err).ok());
  EXPECT_EQ(f.out.str(), "mul_mat/q4_K/n:1\nmul_mat/q6_K/n:1\n");
  EXPECT_EQ(f.calls, 0);
}

TEST(GoogleBenchmark, FileIsJsonWhateverTheFormat) {
  Fixture f;
  const auto path = std::filesystem::temp_directory_path() / fmt::format("cudabk_gb_{}.json", getpid());
  const auto ran = run_google_benchmark(
      f.cases, flags_of({"--benchmark_format=csv", "--benchmark_out=" + path.string()}), f.out, f.err);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_NE(f.out.str().find("name,iterations,real_time"), std::string::npos) << f.out.str();
  const auto text = read_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(text.ok());
  EXPECT_GE(nlohmann::json::parse(*text)["benchmarks"].size(), 8U);
}

TEST(GoogleBenchmark, ErrorsAreEntriesAndAreReturned) {
  Fixture f;
  f.cases.insert(f.cases.begin(), BenchmarkCase{"broken", []() -> Result<BenchmarkSamples> {
                                                  return Error{ErrorKind::kWrongOutput, "NMSE 0.5"};
                                                }});
  const auto ran = run_google_benchmark(f.cases, flags_of({"--benchmark_format=json"}), f.out, f.err);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().kind, ErrorKind::kWrongOutput);
  EXPECT_EQ(ran.error().message, "broken: NMSE 0.5");
  EXPECT_EQ(f.calls, 3);
  const auto document = nlohmann::json::parse(f.out.str());
  EXPECT_EQ(document["benchmarks"][0]["error_message"], "NMSE 0.5");
}

TEST(GoogleBenchmark, InterruptionReportsWhatThereIs) {
  Fixture f;
  f.cases.insert(f.cases.begin() + 1, BenchmarkCase{"stopped", []() -> Result<BenchmarkSamples> {
                                                      return Error{ErrorKind::kInterrupted, "interrupted"};
                                                    }});
  const auto ran = run_google_benchmark(f.cases, flags_of({"--benchmark_format=json"}), f.out, f.err);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(f.calls, 1);
  EXPECT_NE(f.out.str().find("mul_mat/q4_K/n:1"), std::string::npos);
}

TEST(GoogleBenchmark, OtherFlagsAreRefused) {
  for (const char* flag :
       {"--benchmark_repetitions=3", "--benchmark_min_time=1", "--benchmark_out_format=csv", "--benchmark_format=xml",
        "--benchmark_out=", "--benchmark_filter", "--benchmark_filter=(", "--benchmark_list_tests=maybe"}) {
    const auto flags = parse_benchmark_flags({flag});
    ASSERT_FALSE(flags.ok()) << flag;
    EXPECT_EQ(flags.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(flags.error().message.find("--benchmark_filter"), std::string::npos);
  }
  EXPECT_TRUE(is_benchmark_flag("--benchmark_min_time=1"));
  EXPECT_FALSE(is_benchmark_flag("--type"));
}

}  // namespace
}  // namespace cudabk
