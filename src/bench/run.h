// Measures cases: build, verify, time, trace, summarise. One case's error never stops the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/result.h"
#include "core/result.h"
#include "device/device.h"
#include "dispatch/profile.h"
#include "measure/sampler.h"

namespace cudabk {

enum class CheckMode { kOnce, kAll, kOff };               // --check
enum class TimerChoice { kAuto, kCupti, kEvent, kWall };  // --timer
enum class CaseOrder { kFixed, kRandom, kInterleave };    // --order

struct RunOptions {
  uint64_t seed = 42;
  std::string distribution = "normal";  // of activations and encodable weights
  CheckMode check = CheckMode::kOnce;
  TimerChoice timer = TimerChoice::kAuto;
  CaseOrder order = CaseOrder::kFixed;
  int repetitions = 1;        // measurements of every case
  bool shared_input = false;  // all ops of a replay read the same activations
  bool trace = true;          // kernel times from the tracer, where there is one
  bool measure_limits = true;
  std::set<std::string> no_fuse;
  double budget_s = 0;  // for all cases together; 0: no limit
  SamplerOptions sampler;
  std::vector<std::string> base_command;  // what every row's command starts with, e.g. {"--device","host"}
  std::map<std::string, std::string> tags;
  std::vector<std::string> arguments;
  const std::atomic<bool>* interrupted = nullptr;
  // Given what there is so far, as an incomplete run: after the first case, and then at most every `checkpoint_s`
  // seconds. A process that is killed leaves that behind. May be empty.
  std::function<void(const RunResult&)> checkpoint;
  double checkpoint_s = 5;
};

// Told of the run as it goes on; for tables and progress lines.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void limits_known(const RunEnvironment&, const RunLimits&) {}
  // `left_s`: estimated time left, negative while unknown.
  virtual void case_started(size_t index, size_t total, const BenchCase&, double left_s) {
    (void)index, (void)total, (void)left_s;
  }
  virtual void case_done(const CaseResult&) {}
};

// Cases come back in the order of `cases` (and of repetitions), whatever order they ran in; those that were not
// reached are left out and `complete` is false. The error is that of the run as a whole (a device that is gone).
Result<RunResult> run_cases(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                            const RunOptions& options, RunObserver& observer);

// The error kind that a row's status stands for; nullopt for "ok".
std::optional<ErrorKind> error_kind_of(CaseStatus status);

// The status of a row that ended with this error.
CaseStatus status_of_error(const Error& error);

// The command line that measures one row again.
std::string row_command(const BenchCase& c, const RunOptions& options);

}  // namespace cudabk
