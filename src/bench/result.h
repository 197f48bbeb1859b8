// One run's results as data. Base units: ns, bytes, operations. Numbers that do not exist are empty, never 0 or NaN.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/repack.h"
#include "core/result.h"
#include "device/device.h"
#include "dispatch/problem.h"
#include "measure/statistics.h"
#include "ops/op_def.h"

namespace cudabk {

// What became of a case.
enum class CaseStatus {
  kOk,           // verified (or `--check off`) and timed
  kWrong,        // differs from the reference; not timed
  kUnsupported,  // the op or variant cannot run this here
  kFailed,       // an error while building, running or timing
  kOutOfMemory,
  kUnfit,        // the machine lacks something else: NVRTC, the GEMM library
  kThrottled,    // --on-throttle fail: the clock stayed below the threshold
  kNoSamples,    // no valid sample; metrics are null
  kInterrupted,  // Ctrl-C before it was done
};
std::string_view status_name(CaseStatus status);  // "ok", "wrong", ...

// The comparison with the reference.
struct CheckResult {
  bool done = false;  // false: unverified
  bool passed = false;
  double nmse = 0;
  double tolerance = 0;  // bound on nmse
  int64_t elements = 0;  // compared
  std::string worst;     // "[3,17,0,0]: 1.25, reference 1.5"
};

// One launch of the plan, per op.
struct LaunchResult {
  std::string label;      // "mmvq q4_K"
  std::string kernel;     // template-id, or "gemm", "fill"
  std::string code_hash;  // empty for library calls
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t shared_bytes = 0;
  int registers = 0, spill_bytes = 0;
  int kernels = 0;                  // device kernels it became (0: not traced)
  std::optional<double> median_ns;  // from the tracer
  std::optional<double> gap_ns;     // idle time before it, median
};

struct CaseResult {
  std::string key;     // BenchCase::key()
  std::string target;  // "mul_mat"
  CaseParams params;
  std::string note;     // shape name
  std::string variant;  // as asked for: "auto"
  std::string launch, fusion, cache;
  std::string fallback;  // why a graph was asked for and not used
  int repetition = 0;

  CaseStatus status = CaseStatus::kFailed;
  std::string message;
  uint64_t seed = 0;
  std::string family;  // chosen
  Config config;
  int rule = -1;
  std::vector<std::string> fusions;  // rules that fired

  int copies = 0;              // independent ops per replay
  int launches = 0;            // per op (rounded to what the plan holds / copies)
  int64_t weight_bytes = 0;    // distinct, per replay, as stored
  std::string layout = "raw";  // of the weights: "raw", or "frag" where some are packed
  RepackStats repack;          // what packing them took at upload, all copies
  double footprint_l2 = 0;     // distinct bytes touched per replay / L2
  bool cold_proven = false;
  std::string timer;        // "event", "wall"
  std::string stop_reason;  // "precision", "time", ...
  int warmup_replays = 0;

  Cost cost;                       // per op
  std::vector<double> samples_ns;  // per op
  std::optional<Summary> summary;
  std::optional<double> kernel_ns;        // traced kernel time per op
  std::optional<double> host_enqueue_ns;  // per op
  std::optional<double> gap_ns;           // per op, between kernels
  std::optional<double> span_ns;          // per op, from a traced replay's first kernel start to its last kernel end
  std::optional<double> span_time_ns;     // per op, between events, of the replays between the traced ones
  std::vector<double> clocks_mhz;         // SM clock per batch of samples, where known
  std::vector<int> clock_samples;         // how many consecutive samples belong to each of clocks_mhz; empty: not known
  std::vector<std::string> flags;         // "cache-resident", "throttled", "unverified", ...
  std::vector<LaunchResult> breakdown;
  CheckResult check;
  std::string command;  // reproduces the row

  std::optional<double> time_ns() const;            // median
  std::optional<double> bytes_per_ns() const;       // compulsory bytes over the median
  std::optional<double> operations_per_ns() const;  // * 1e-3 = TFLOP/s
};

// What the machine can do, measured in this run; empty where it was not measured.
struct RunLimits {
  std::optional<double> read_bytes_per_ns, copy_bytes_per_ns, gemm_operations_per_ns;
  std::string gemm;  // which GEMM shape and type
  std::string note;  // why something is missing
};

struct RunEnvironment {
  std::string tool_version;
  DeviceInfo device;
  std::string toolkit;  // "13.0", or empty
  std::string profile_source, profile_why;
  std::vector<std::string> profile_warnings;
  std::map<std::string, std::string> facts;  // driver, clocks, cupti, nvml ...: as found
  std::map<std::string, std::string> tags;   // --tag
  std::vector<std::string> arguments;
  std::string started;  // ISO 8601, UTC
};

struct RunResult {
  RunEnvironment environment;
  RunLimits limits;
  std::vector<CaseResult> cases;
  bool complete = false;  // false: interrupted or out of budget
  std::string incomplete_reason;
};

// Achieved fraction of what the limits allow for this cost: max(bytes / read roof, operations / gemm roof) / time.
std::optional<double> limit_fraction(const CaseResult& result, const RunLimits& limits);

// ---- documents (each is complete text) ----
inline constexpr std::string_view kResultSchema = "cudabk-result/1";
std::string result_to_json(const RunResult& run);                              // pretty, ends with a newline
std::string case_to_jsonl(const CaseResult& result, const RunLimits& limits);  // one line
std::string result_to_jsonl(const RunResult& run);                             // a header line, then one per case
// For tables of several runs: the axes of all of them, and columns that tell the runs apart.
struct CsvOptions {
  const RunResult* axes_of = nullptr;  // axes of these cases as columns; nullptr: of the run's own
  std::string file = {};
  bool with_run = false;  // columns file, started, cudabk in front
  bool with_header = true;
};
std::string result_to_csv(const RunResult& run, const CsvOptions& options);
inline std::string result_to_csv(const RunResult& run) { return result_to_csv(run, {}); }
std::string result_to_markdown(const RunResult& run);
std::string result_to_junit(const RunResult& run);

// What a document of this schema must have as its "digest": a hash of everything else it says (result_digest.h).
Result<std::string> digest_of_result(std::string_view json);

// RFC 4180: quotes a field when it has to be.
std::string csv_field(std::string_view text);

}  // namespace cudabk
