// One case: build, verify, time, trace. Holds what cases share during a run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bench/replicas.h"
#include "bench/result.h"
#include "bench/run.h"
#include "measure/cache_control.h"
#include "measure/clock.h"
#include "measure/nvml.h"
#include "measure/trace.h"

namespace cudabk {

class CaseRunner {
 public:
  // `device` and `profile` outlive the runner. Opens the tracer where one is wanted and there is one.
  static Result<std::unique_ptr<CaseRunner>> create(Device& device, const Profile& profile, const RunOptions& options);

  // Compiles the kernels of these cases in parallel. A kernel that does not compile is its case's error later.
  Status prefetch(const std::vector<BenchCase>& cases);

  // Never fails: what went wrong is the row's status and message.
  CaseResult run(const BenchCase& c, int repetition, const RunLimits& limits);

  // Clocks, power, other processes; empty where NVML is missing.
  std::map<std::string, std::string> gpu_facts() const;

  const std::string& trace_note() const { return trace_note_; }  // why kernels are not traced; empty when they are

 private:
  struct Prepared;  // replicas, backend, execution of one case

  CaseRunner(Device& device, const Profile& profile, const RunOptions& options)
      : device_(device), profile_(profile), options_(options) {}
  Status measure(const BenchCase& c, CaseResult& row);
  Status prepare(const BenchCase& c, Prepared& prepared, CaseResult& row);
  Status verify(const BenchCase& c, Prepared& prepared, CaseResult& row);
  Status time(Prepared& prepared, CaseResult& row);
  Status trace(Prepared& prepared, CaseResult& row);
  void describe_launches(const Prepared& prepared, CaseResult& row) const;
  PlanOptions plan_options(const BenchCase& c) const;

  Device& device_;
  const Profile& profile_;
  RunOptions options_;
  std::unique_ptr<Stream> clock_stream_;
  std::unique_ptr<SpinKernel> spin_;
  std::unique_ptr<KernelTracer> tracer_;
  std::unique_ptr<GpuMonitor> monitor_;  // may be null
  std::string trace_note_;
  std::map<std::string, CheckResult> checked_;  // by target, parameters, variant, fusion
};

// Marks what a reader of the row must know: above the roof, throttled, few samples ...
void add_flags(CaseResult& row, const RunLimits& limits);

}  // namespace cudabk
