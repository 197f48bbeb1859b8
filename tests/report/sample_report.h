// A result with everything that a report shows: types over columns, forced variants, a traced layer, rows without a
// figure, hostile texts.
#pragma once

#include <fmt/format.h>

#include <string>

#include "report/report.h"
#include "results/sample_results.h"

namespace cudabk::test {

inline CaseResult product_case(const std::string& type, int64_t m, int64_t n, int64_t k, double ns, uint64_t seed) {
  CaseResult c = sample_case(fmt::format("type={} m={} n={} k={}", type, m, n, k), noisy_samples(ns, 60, seed));
  const double weights = static_cast<double>(m * k) * (type == "f16" ? 2.0 : 0.5625);
  c.cost = {weights + 4.0 * static_cast<double>(n * (m + k)), 2.0 * static_cast<double>(m * n * k), weights};
  c.family = n <= 8 ? "mmvq" : n <= 64 ? "mmq" : "blas";
  c.config = n <= 8 ? Config{{"rows", 2}, {"warps", 4}} : n <= 64 ? Config{{"tile_m", 64}} : Config{};
  c.rule = 1;
  return c;
}

inline CaseResult layer_case(int64_t tokens) {
  CaseResult c =
      sample_case(fmt::format("type=q4_K hidden=4096 ffn=14336 tokens={}", tokens), noisy_samples(91e3, 40, 5));
  c.key.replace(0, c.key.find(' '), "layer");
  c.target = "layer";
  c.family.clear();
  c.config.clear();
  c.breakdown.clear();
  for (const char* label : {"rms_norm", "quantize", "mmvq gate", "mmvq up", "swiglu", "mmvq down", "add"}) {
    LaunchResult l{label, std::string(label) + "<DType::q4_K, 1>", "sha256:00", {4096, 1, 1}, {128, 1, 1}, 1024, 40};
    l.median_ns = 11e3;
    l.gap_ns = 900;
    c.breakdown.push_back(l);
  }
  c.launches = 7;
  c.kernel_ns = 77e3;
  c.gap_ns = 6300;
  c.fusions = {"norm_quantize"};
  return c;
}

// `slower`: factor on the times of q6_K at n = 64.
inline RunResult report_run(uint64_t seed = 1, double slower = 1) {
  std::vector<CaseResult> cases;
  for (const char* type : {"q4_K", "q6_K", "f16"}) {
    for (const int64_t n : {1, 8, 64, 512}) {
      const double factor = std::string(type) == "q6_K" && n == 64 ? slower : 1;
      cases.push_back(product_case(type, 4096, n, 14336, factor * (12e3 + 190.0 * static_cast<double>(n)), seed++));
    }
  }
  cases.push_back(layer_case(1));
  cases.push_back(layer_case(8));
  CaseResult wrong = product_case("q4_K", 4096, 2, 14336, 1e4, seed++);
  wrong.status = CaseStatus::kWrong;
  wrong.message =
      "NMSE 0.3, bound 0.0005 </script><script>document.title = 'broken'</script> & \"quoted\", 'single' | pipe";
  wrong.samples_ns.clear();
  wrong.summary.reset();
  wrong.check.passed = false;
  cases.push_back(wrong);
  CaseResult missing = product_case("q4_K", 4096, 4, 14336, 1e4, seed++);
  missing.status = CaseStatus::kUnsupported;
  missing.message = "needs <tensor cores>";
  missing.samples_ns.clear();
  missing.summary.reset();
  missing.family.clear();
  missing.breakdown.clear();
  missing.check = {};
  cases.push_back(missing);
  cases[3].flags = {"throttled"};
  RunResult run = sample_run(std::move(cases));
  run.limits.gemm_operations_per_ns = 830e3;
  run.limits.gemm = "bf16 8192x4096x16384";
  run.environment.arguments = {"bench", "mulmat", "--type", "q4_K,q6_K,f16"};
  run.environment.profile_source = "built-in sm_90a";
  return run;
}

inline ResultFile file_of(RunResult run, const std::string& name, const std::string& started = "2026-01-02T03:04:05Z") {
  run.environment.started = started;
  return {name, std::move(run), "sha256:00"};
}

inline ReportInput report_input() {
  ReportInput input;
  input.runs.push_back(file_of(report_run(1), "old.json", "2026-01-01T00:00:00Z"));
  input.runs.push_back(file_of(report_run(100, 1.2), "new.json"));
  ResultSet baseline, candidate;
  baseline.files.push_back(input.runs[0]);
  candidate.files.push_back(input.runs[1]);
  CompareOptions options;
  options.judge_unchanged = true;  // the sample kernels all have one hash
  input.comparison = compare_results(baseline, candidate, options);
  return input;
}

}  // namespace cudabk::test
