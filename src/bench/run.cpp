#include "bench/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "bench/case_runner.h"
#include "bench/environment.h"
#include "core/log.h"

namespace cudabk {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Turn {
  size_t index = 0;
  int repetition = 0;
};

// Every case times every repetition, in the order they run.
std::vector<Turn> turns(size_t cases, const RunOptions& options) {
  std::vector<Turn> list;
  if (options.order == CaseOrder::kInterleave) {
    for (int r = 0; r < options.repetitions; ++r) {
      for (size_t i = 0; i < cases; ++i) {
        list.push_back({i, r});
      }
    }
    return list;
  }
  for (size_t i = 0; i < cases; ++i) {
    for (int r = 0; r < options.repetitions; ++r) {
      list.push_back({i, r});
    }
  }
  if (options.order == CaseOrder::kRandom) {
    std::mt19937_64 random(options.seed);
    std::shuffle(list.begin(), list.end(), random);
  }
  return list;
}

bool stop_requested(const RunOptions& options) { return options.interrupted != nullptr && *options.interrupted; }

bool needs_quotes(const std::string& word) {
  return word.empty() || word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "-_=+.,:/@%") != std::string::npos;
}

using Rows = std::vector<std::optional<CaseResult>>;

// Those that were measured, in their order.
void add_rows(Rows rows, RunResult& run) {
  for (std::optional<CaseResult>& row : rows) {
    if (row) {
      run.cases.push_back(std::move(*row));
    }
  }
}

void describe_run(Device& device, const Profile& profile, const RunOptions& options, CaseRunner& runner,
                  RunResult& run) {
  run.environment = describe_environment(device, profile, options);
  run.environment.facts.merge(runner.gpu_facts());
  if (!runner.trace_note().empty()) {
    run.environment.facts["tracer"] = runner.trace_note();
  }
  if (options.measure_limits) {
    run.limits = measure_run_limits(device, options.interrupted);
  } else {
    run.limits.note = "not measured (--no-limits)";
  }
}

// What RunOptions::checkpoint promises. The last case needs none: the run's own end follows.
class Checkpoints {
 public:
  Checkpoints(const RunOptions& options, size_t total) : options_(options), total_(total) {}

  void offer(const RunResult& run, const Rows& rows, size_t done) {
    if (!options_.checkpoint || done >= total_ || (given_ && seconds_since(last_) < options_.checkpoint_s)) {
      return;
    }
    RunResult partial = run;
    partial.complete = false;
    partial.incomplete_reason = fmt::format("the run was ended from outside; {} of {} measurements done", done, total_);
    add_rows(rows, partial);
    options_.checkpoint(partial);
    last_ = Clock::now();
    given_ = true;
  }

 private:
  const RunOptions& options_;
  size_t total_;
  bool given_ = false;
  Clock::time_point last_{};
};

// Axes whose name is that of another option of `bench`.
bool is_option_name(const std::string& axis) { return axis == "order" || axis == "precision" || axis == "seed"; }

}  // namespace

std::optional<ErrorKind> error_kind_of(CaseStatus status) {
  switch (status) {
    case CaseStatus::kOk:
      return std::nullopt;
    case CaseStatus::kWrong:
      return ErrorKind::kWrongOutput;
    case CaseStatus::kUnsupported:
      return ErrorKind::kUnsupported;
    case CaseStatus::kOutOfMemory:
    case CaseStatus::kUnfit:
      return ErrorKind::kUnfit;
    case CaseStatus::kThrottled:
    case CaseStatus::kNoSamples:
      return ErrorKind::kInconclusive;
    case CaseStatus::kInterrupted:
      return ErrorKind::kInterrupted;
    case CaseStatus::kFailed:
      return ErrorKind::kInternal;
  }
  return ErrorKind::kInternal;
}

CaseStatus status_of_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUnsupported:
    case ErrorKind::kInvalid:
      return CaseStatus::kUnsupported;
    case ErrorKind::kInconclusive:
      return error.message.find("clock fell") != std::string::npos ? CaseStatus::kThrottled : CaseStatus::kNoSamples;
    case ErrorKind::kWrongOutput:
      return CaseStatus::kWrong;
    case ErrorKind::kUnfit:
      return error.message.find("memory") != std::string::npos ? CaseStatus::kOutOfMemory : CaseStatus::kUnfit;
    case ErrorKind::kInterrupted:
      return CaseStatus::kInterrupted;
    case ErrorKind::kNothing:
    case ErrorKind::kInternal:
      return CaseStatus::kFailed;
  }
  return CaseStatus::kFailed;
}

std::string row_command(const BenchCase& c, const RunOptions& options) {
  std::vector<std::string> words{"cudabk", "bench", c.target};
  for (const auto& [name, value] : c.params.values) {
    const bool by_name = is_option_name(name);
    words.push_back(by_name ? "--axis" : (name.size() == 1 ? "-" : "--") + name);
    words.push_back(by_name ? name + "=" + value : value);
  }
  if (!c.variant.family.empty()) {
    words.insert(words.end(), {"--variant", c.variant.text()});
  }
  words.insert(words.end(), {"--launch", c.launch == LaunchMode::kGraph ? "graph" : "eager"});
  words.insert(words.end(), {"--cache", c.cold ? "cold" : "hot"});
  if (!c.fusion) {
    words.insert(words.end(), {"--fusion", "off"});
  }
  for (const std::string& rule : options.no_fuse) {
    words.insert(words.end(), {"--no-fuse", rule});
  }
  if (options.distribution != "normal") {
    words.insert(words.end(), {"--dist", options.distribution});
  }
  if (options.shared_input) {
    words.emplace_back("--shared-input");
  }
  words.insert(words.end(), {"--seed", fmt::format("{}", options.seed)});
  words.insert(words.end(), options.base_command.begin(), options.base_command.end());
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "" : " ";
    text += needs_quotes(word) ? "'" + word + "'" : word;
  }
  return text;
}

Result<RunResult> run_cases(Device& device, const Profile& profile, const std::vector<BenchCase>& cases,
                            const RunOptions& options, RunObserver& observer) {
  const Clock::time_point start = Clock::now();
  RunResult run;
  CUDABK_ASSIGN(const auto runner, CaseRunner::create(device, profile, options));
  if (const Status compiled = runner->prefetch(cases); !compiled.ok()) {
    log_debug("prefetch: {}", compiled.error().message);
  }
  describe_run(device, profile, options, *runner, run);
  observer.limits_known(run.environment, run.limits);

  const std::vector<Turn> order = turns(cases.size(), options);
  Rows rows(cases.size() * static_cast<size_t>(options.repetitions));
  Checkpoints checkpoints(options, order.size());
  const double setup_s = seconds_since(start);
  run.complete = true;
  for (size_t done = 0; done < order.size(); ++done) {
    const double elapsed = seconds_since(start);
    if (stop_requested(options)) {
      run.complete = false;
      run.incomplete_reason = "interrupted";
      break;
    }
    if (options.budget_s > 0 && elapsed > options.budget_s) {
      run.complete = false;
      run.incomplete_reason = fmt::format("the budget of {:.0f} s is used up; {} of {} measurements done",
                                          options.budget_s, done, order.size());
      break;
    }
    const double left =
        done == 0 ? -1 : (elapsed - setup_s) / static_cast<double>(done) * static_cast<double>(order.size() - done);
    const Turn turn = order[done];
    const BenchCase& c = cases[turn.index];
    observer.case_started(done, order.size(), c, left);
    CaseResult row = runner->run(c, turn.repetition, run.limits);
    if (row.status == CaseStatus::kInterrupted) {
      run.complete = false;
      run.incomplete_reason = "interrupted";
      break;
    }
    observer.case_done(row);
    if (row.stop_reason == stop_rule_name(StopRule::kInterrupted)) {  // with the samples that it has
      run.complete = false;
      run.incomplete_reason = "interrupted";
    }
    rows[turn.index * static_cast<size_t>(options.repetitions) + static_cast<size_t>(turn.repetition)] = std::move(row);
    checkpoints.offer(run, rows, done + 1);
  }
  add_rows(std::move(rows), run);
  return run;
}

}  // namespace cudabk
