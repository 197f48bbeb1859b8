// Results made by hand for tests of what reads them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "bench/result.h"
#include "core/file.h"

namespace cudabk::test {

inline CaseResult sample_case(const std::string& params, std::vector<double> samples_ns) {
  CaseResult c;
  c.key = "mul_mat " + params + " variant=auto launch=graph fusion=on cache=cold";
  c.target = "mul_mat";
  for (size_t begin = 0; begin < params.size();) {
    const size_t end = std::min(params.find(' ', begin), params.size());
    const std::string pair = params.substr(begin, end - begin);
    c.params.set(pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1));
    begin = end + 1;
  }
  c.variant = "auto";
  c.launch = "graph";
  c.fusion = "on";
  c.cache = "cold";
  c.status = CaseStatus::kOk;
  c.family = "mmvq";
  c.config = {{"rows", 2}, {"warps", 4}};
  c.copies = 28;
  c.launches = 2;
  c.weight_bytes = 1 << 28;
  c.footprint_l2 = 4.5;
  c.cold_proven = true;
  c.timer = "event";
  c.stop_reason = "precision";
  c.cost = {9.5e6, 3.4e7, 9.4e6};
  c.samples_ns = std::move(samples_ns);
  c.summary = summarize(c.samples_ns);
  const int half = static_cast<int>(c.samples_ns.size() / 2);
  c.clocks_mhz = {1980, 1980};
  c.clock_samples = {half, static_cast<int>(c.samples_ns.size()) - half};
  c.check = {true, true, 1e-6, 5e-4, 4096, ""};
  c.breakdown.push_back({"mmvq q4_K", "mmvq<DType::q4_K, 1, 4, 2>", "sha256:00", {4096, 1, 1}, {128, 1, 1}});
  c.command = "cudabk bench mul_mat --type q4_K";
  return c;
}

inline RunResult sample_run(std::vector<CaseResult> cases) {
  RunResult run;
  run.environment.tool_version = "0.1.0";
  run.environment.device.id = "cuda:0";
  run.environment.device.name = "NVIDIA H200";
  run.environment.device.arch = "sm_90a";
  run.environment.device.sm_count = 132;
  run.environment.started = "2026-01-02T03:04:05Z";
  run.limits.read_bytes_per_ns = 4500;
  run.cases = std::move(cases);
  run.complete = true;
  return run;
}

// `count` times around `median_ns`, a pure function of the seed.
inline std::vector<double> noisy_samples(double median_ns, size_t count, uint64_t seed, double sigma = 0.01) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::vector<double> samples(count);
  for (double& sample : samples) {
    sample = median_ns * (1 + noise(random));
  }
  return samples;
}

// A folder of the test's own, removed with it.
class TempFolder {
 public:
  TempFolder() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("cudabk_" + std::string(info->test_suite_name()) + "_" + info->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const Status written = write_file_atomic(path_ / name, text);
    EXPECT_TRUE(written.ok());
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace cudabk::test
