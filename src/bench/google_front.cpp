#include "bench/google_front.h"

#include "bench/case_runner.h"
#include "bench/environment.h"
#include "core/file.h"
#include "measure/google_benchmark.h"

namespace cudabk {
namespace {

// "mul_mat/type:q4_K/m:4096/n:1/k:4096/variant:auto/launch:graph/fusion:on/cache:cold"
std::string benchmark_name(const BenchCase& c) {
  std::string name = c.key();
  for (char& ch : name) {
    ch = ch == ' ' ? '/' : (ch == '=' ? ':' : ch);
  }
  return name;
}

BenchmarkSamples samples_of(const CaseResult& row, const RunLimits& limits) {
  BenchmarkSamples samples;
  samples.ns = row.samples_ns;
  samples.label = row.family.empty() ? row.variant : row.family + " " + config_text(row.config);
  const std::pair<const char*, std::optional<double>> counters[] = {
      {"bytes_per_second", row.bytes_per_ns() ? std::optional(*row.bytes_per_ns() * 1e9) : std::nullopt},
      {"operations_per_second", row.operations_per_ns() ? std::optional(*row.operations_per_ns() * 1e9) : std::nullopt},
      {"limit_fraction", limit_fraction(row, limits)},
      {"kernel_ns", row.kernel_ns},
  };
  for (const auto& [name, value] : counters) {
    if (value) {
      samples.counters[name] = *value;
    }
  }
  return samples;
}

}  // namespace

Status run_google_benchmark_cases(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                                  const RunOptions& options, const std::vector<std::string>& google_flags,
                                  std::ostream& out, std::ostream& err) {
  CUDABK_ASSIGN(const BenchmarkFlags flags, parse_benchmark_flags(google_flags));
  if (!flags.out.empty()) {
    CUDABK_TRY(check_writable(flags.out));
  }
  CUDABK_ASSIGN(const auto runner, CaseRunner::create(device, profile, options));
  RunLimits limits;
  if (options.measure_limits && !flags.list) {
    limits = measure_run_limits(device, options.interrupted);
  }
  std::vector<BenchmarkCase> benchmarks;
  for (const BenchCase& c : cases) {
    const auto measure = [&runner, &limits, &options, &c]() -> Result<BenchmarkSamples> {
      if (options.interrupted != nullptr && *options.interrupted) {
        return Error{ErrorKind::kInterrupted, "interrupted"};
      }
      const CaseResult row = runner->run(c, 0, limits);
      if (row.status != CaseStatus::kOk) {
        return Error{*error_kind_of(row.status), std::string(status_name(row.status)) + ": " + row.message};
      }
      return samples_of(row, limits);
    };
    benchmarks.push_back({benchmark_name(c), measure});
  }
  CUDABK_ASSIGN(const int64_t count, run_google_benchmark(benchmarks, flags, out, err));
  (void)count;
  return success();
}

}  // namespace cudabk
