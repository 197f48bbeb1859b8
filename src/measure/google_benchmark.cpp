#include "measure/google_benchmark.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>

#include "core/file.h"

namespace cudabk {
namespace {

constexpr std::string_view kPrefix = "--benchmark_";
constexpr std::string_view kAccepted =
    "--benchmark_filter=REGEX, --benchmark_list_tests, --benchmark_format=console|json|csv, --benchmark_out=FILE";
constexpr double kNsPerSecond = 1e9;

std::unique_ptr<benchmark::BenchmarkReporter> make_reporter(const std::string& format) {
  if (format == "json") {
    return std::make_unique<benchmark::JSONReporter>();
  }
  if (format == "csv") {
    BENCHMARK_DISABLE_DEPRECATED_WARNING
    return std::make_unique<benchmark::CSVReporter>();
    BENCHMARK_RESTORE_DEPRECATED_WARNING
  }
  return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
}

// Hands every run to the chosen reporter and to the JSON file's, under the case's plain name: the numbers of iterations
// and repetitions would make it differ from run to run. The console gets the aggregates only.
class Reporter final : public benchmark::BenchmarkReporter {
 public:
  Reporter(const BenchmarkFlags& flags, std::ostream& out, std::ostream& err)
      : console_(flags.format == "console"), shown_(make_reporter(flags.format)) {
    shown_->SetOutputStream(&out);
    shown_->SetErrorStream(&err);
    file_.SetOutputStream(&file_text_);
    file_.SetErrorStream(&err);
    SetOutputStream(&out);
    SetErrorStream(&err);
  }

  bool ReportContext(const Context& context) override {
    return shown_->ReportContext(context) && file_.ReportContext(context);
  }

  void ReportRuns(const std::vector<Run>& report) override {
    std::vector<Run> runs = report;
    for (Run& run : runs) {
      run.run_name.args.clear();
      run.run_name.iterations.clear();
      run.run_name.repetitions.clear();
      run.run_name.time_type.clear();
      run.cpu_accumulated_time = run.real_accumulated_time;
    }
    file_.ReportRuns(runs);
    if (console_ && runs.size() > 1) {
      std::erase_if(runs, [](const Run& run) { return run.run_type != Run::RT_Aggregate; });
    }
    shown_->ReportRuns(runs);
  }

  void Finalize() override {
    shown_->Finalize();
    file_.Finalize();
  }

  std::string file_text() const { return file_text_.str(); }

 private:
  bool console_;
  std::unique_ptr<benchmark::BenchmarkReporter> shown_;
  benchmark::JSONReporter file_;
  std::ostringstream file_text_;
};

struct Outcome {
  const BenchmarkCase* which = nullptr;
  BenchmarkSamples samples;
  std::string error;
  size_t next = 0;  // sample to report
};

std::vector<const BenchmarkCase*> select(const std::vector<BenchmarkCase>& cases, const std::string& filter) {
  const bool negated = !filter.empty() && filter.front() == '-';
  const std::regex expression(negated ? filter.substr(1) : filter, std::regex::extended);  // parse checked it
  std::vector<const BenchmarkCase*> selected;
  for (const BenchmarkCase& c : cases) {
    if (filter.empty() || filter == "all" || std::regex_search(c.name, expression) != negated) {
      selected.push_back(&c);
    }
  }
  return selected;
}

// Google Benchmark's functions carry no data: the argument is an index into this, and is taken out of the names again.
std::vector<Outcome> reported;

void report_sample(benchmark::State& state) {
  Outcome& outcome = reported[static_cast<size_t>(state.range(0))];
  for ([[maybe_unused]] auto _ : state) {
    if (!outcome.error.empty()) {
      state.SkipWithError(outcome.error.c_str());
      break;
    }
    state.SetIterationTime(outcome.samples.ns[outcome.next++ % outcome.samples.ns.size()] / kNsPerSecond);
  }
  for (const auto& [name, value] : outcome.samples.counters) {
    if (std::isfinite(value)) {
      state.counters[name] = value;
    }
  }
  state.SetLabel(outcome.samples.label);
}

void register_outcome([[maybe_unused]] size_t index) {
#ifndef __clang_analyzer__  // which takes the registry's ownership of the benchmark for a leak
  const Outcome& outcome = reported[index];
  benchmark::RegisterBenchmark(outcome.which->name.c_str(), &report_sample)
      ->Arg(static_cast<int64_t>(index))
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kNanosecond)
      ->Repetitions(static_cast<int>(std::max<size_t>(1, outcome.samples.ns.size())));
#endif
}

std::vector<Outcome> measure(const std::vector<const BenchmarkCase*>& selected, std::optional<Error>& first_error) {
  std::vector<Outcome> outcomes;
  for (const BenchmarkCase* c : selected) {
    Result<BenchmarkSamples> samples = c->run();
    if (!samples.ok() && samples.error().kind == ErrorKind::kInterrupted) {
      first_error = samples.error();
      break;
    }
    Outcome outcome{c, {}, "", 0};
    if (samples.ok() && samples->ns.empty()) {
      samples = Error{ErrorKind::kInconclusive, "no valid samples"};
    }
    if (samples.ok()) {
      outcome.samples = std::move(samples).value();
    } else {
      outcome.error = samples.error().message;
      first_error = first_error.has_value() ? first_error : std::move(samples).error().with_context(c->name);
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace

bool is_benchmark_flag(std::string_view argument) { return argument.substr(0, kPrefix.size()) == kPrefix; }

Result<BenchmarkFlags> parse_benchmark_flags(const std::vector<std::string>& arguments) {
  BenchmarkFlags flags;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--benchmark_list_tests" && (equals == std::string::npos || value == "true" || value == "false")) {
      flags.list = value != "false";
    } else if (name == "--benchmark_filter" && equals != std::string::npos) {
      flags.filter = value;
    } else if (name == "--benchmark_format" && (value == "console" || value == "json" || value == "csv")) {
      flags.format = value;
    } else if (name == "--benchmark_out" && !value.empty()) {
      flags.out = value;
    } else {
      return invalid(fmt::format("{}: not accepted here; Google Benchmark's flags are {}", argument, kAccepted));
    }
  }
  try {
    const bool negated = !flags.filter.empty() && flags.filter.front() == '-';
    const std::regex expression(negated ? flags.filter.substr(1) : flags.filter, std::regex::extended);
  } catch (const std::regex_error&) {
    return invalid(fmt::format("--benchmark_filter={}: not a regular expression (POSIX extended)", flags.filter));
  }
  return flags;
}

Result<int64_t> run_google_benchmark(const std::vector<BenchmarkCase>& cases, const BenchmarkFlags& flags,
                                     std::ostream& out, std::ostream& err) {
  const std::vector<const BenchmarkCase*> selected = select(cases, flags.filter);
  if (selected.empty()) {
    return Error{ErrorKind::kNothing,
                 fmt::format("--benchmark_filter={} selects none of {} cases", flags.filter, cases.size())};
  }
  if (flags.list) {
    for (const BenchmarkCase* c : selected) {
      out << c->name << '\n';
    }
    return static_cast<int64_t>(selected.size());
  }
  std::optional<Error> error;
  reported = measure(selected, error);
  const auto measured = static_cast<int64_t>(reported.size());
  if (measured > 0) {
    benchmark::ClearRegisteredBenchmarks();
    for (size_t i = 0; i < reported.size(); ++i) {
      register_outcome(i);
    }
    Reporter reporter(flags, out, err);
    benchmark::RunSpecifiedBenchmarks(&reporter, nullptr, "all");
    benchmark::ClearRegisteredBenchmarks();
    reported.clear();
    if (!flags.out.empty()) {
      CUDABK_TRY(write_file_atomic(flags.out, reporter.file_text()));
    }
  }
  if (error.has_value()) {
    return *std::move(error);
  }
  return measured;
}

}  // namespace cudabk
