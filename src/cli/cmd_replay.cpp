// cudabk replay: statistics, verdicts, fitting and search strategies once more on saved samples, without a GPU.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "cli/checks.h"
#include "cli/gate_options.h"
#include "cli/outputs.h"
#include "core/file.h"
#include "core/units.h"
#include "device/label.h"
#include "measure/sampler.h"
#include "replay/refit.h"
#include "replay/simulate.h"
#include "replay/statistics.h"
#include "replay/verdicts.h"
#include "results/load.h"

namespace cudabk::cli {
namespace {

struct ReplayFlags {
  std::string file;
  // Of a result.
  std::string confidence = "0.95", precision = "1%", baseline, thresholds;
  std::string gate_confidence = "0.99";
  int64_t min_samples = 20, first = 0;
  bool force = false, judge_unchanged = false;
  // Of a journal.
  std::string regret, margin = "1%", strategy, top = "4", write;
  int64_t confirm = 20;
  int rounds = 5;
  uint64_t seed = 1;
  std::string json;
};

constexpr double kLargestThreshold = 10;
constexpr int kMostSamples = 1'000'000;
constexpr const char* kDefaultThresholds = "1%,2%,3%,5%,10%";

// "1%,3%" -> {0.01, 0.03}
Result<std::vector<double>> fractions(const std::string& text, double limit, const char* flag) {
  std::vector<double> values;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    Result<double> value = parse_fraction(text.substr(at, end - at), limit);
    if (!value.ok()) {
      return std::move(value).error().with_context(flag);
    }
    values.push_back(*value);
    at = end + 1;
  }
  return values;
}

Result<double> confidence_of(const std::string& text, const char* flag) {
  Result<double> value = parse_fraction(text, 1.0);
  if (!value.ok()) {
    return std::move(value).error().with_context(flag);
  }
  if (*value < 0.5 || *value >= 1) {
    return invalid(fmt::format("{}: expected a number from 0.5 to below 1, found {}", flag, text));
  }
  return *value;
}

Status write_json(CliContext& context, const ReplayFlags& flags, const std::string& text) {
  return flags.json.empty() ? success() : context.write_document(flags.json, text);
}

Result<ReplayStatistics> statistics_options(const ReplayFlags& flags) {
  ReplayStatistics options;
  CUDABK_ASSIGN(options.confidence, confidence_of(flags.confidence, "--confidence"));
  CUDABK_ASSIGN(const std::vector<double> precision, fractions(flags.precision, 1.0, "--precision"));
  options.precision = precision.front();
  options.min_samples = static_cast<size_t>(flags.min_samples);
  options.first = static_cast<size_t>(flags.first);
  return options;
}

Status replay_statistics_of(CliContext& context, const ReplayFlags& flags, const ResultSet& set) {
  CUDABK_ASSIGN(const ReplayStatistics options, statistics_options(flags));
  std::vector<ReplayedCase> cases;
  for (const ResultFile& file : set.files) {
    replay_statistics(file.run, options, &cases);
  }
  if (cases.empty()) {
    return Error{ErrorKind::kNothing, flags.file + ": no case has samples"};
  }
  context.print(statistics_text(cases, options));
  return write_json(context, flags, statistics_json(cases, options));
}

Status replay_verdicts_of(CliContext& context, const ReplayFlags& flags, const ResultSet& candidate) {
  CUDABK_ASSIGN(const ResultSet baseline, load_results(flags.baseline));
  note_skipped(context, baseline);
  const std::string& given = flags.thresholds.empty() ? kDefaultThresholds : flags.thresholds;
  CUDABK_ASSIGN(const std::vector<double> thresholds, fractions(given, kLargestThreshold, "--threshold"));
  CompareOptions options;
  CUDABK_ASSIGN(options.confidence, confidence_of(flags.gate_confidence, "--gate-confidence"));
  options.min_samples = static_cast<size_t>(flags.min_samples);
  options.force = flags.force;
  options.judge_unchanged = flags.judge_unchanged;
  CUDABK_ASSIGN(const ReplayStatistics samples, statistics_options(flags));
  const std::vector<ReplayedVerdicts> verdicts =
      replay_verdicts(shortened(baseline, samples), shortened(candidate, samples), options, thresholds);
  context.print(verdicts_text(verdicts));
  CUDABK_TRY(write_json(context, flags, verdicts_json(verdicts)));
  if (verdicts.front().comparison.compared() == 0) {
    return Error{ErrorKind::kNothing, "no case was measured on both sides"};
  }
  return success();
}

Result<Simulation> simulate(const TuneJournal& journal, const ReplayFlags& flags, const std::string& strategy,
                            int64_t top) {
  SimulateOptions options;
  CUDABK_ASSIGN(options.search.strategy, parse_strategy(strategy));
  options.search.top = static_cast<size_t>(top);
  options.confirm_rounds = flags.confirm;
  CUDABK_ASSIGN(const std::vector<double> margin, fractions(flags.margin, 1.0, "--margin"));
  options.margin = margin.front();
  if (!flags.regret.empty()) {
    CUDABK_ASSIGN(const std::vector<double> regret, fractions(flags.regret, 1.0, "--regret"));
    options.regret = regret.front();
  }
  options.rounds = flags.rounds;
  options.seed = flags.seed;
  options.interrupted = &CliContext::interrupted();
  return simulate_search(journal, options);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Status replay_strategy(CliContext& context, const ReplayFlags& flags, const TuneJournal& journal) {
  std::vector<Simulation> simulations;
  for (const std::string& strategy : words_of(flags.strategy)) {
    for (const std::string& word : words_of(flags.top)) {
      const Result<int64_t> top = parse_int(word);
      if (!top.ok() || *top < 1 || *top > 64) {
        return invalid(fmt::format("--top: expected numbers from 1 to 64, found '{}'", word));
      }
      context.show_progress(fmt::format("simulating {} with {} finalists", strategy, *top));
      CUDABK_ASSIGN(Simulation simulation, simulate(journal, flags, strategy, *top));
      simulations.push_back(simulation);
    }
  }
  context.show_progress("");
  context.print(simulation_text(simulations));
  return write_json(context, flags, simulation_json(simulations));
}

Status replay_fit(CliContext& context, const ReplayFlags& flags, const TuneJournal& journal) {
  const std::string& given = flags.regret.empty() ? "1%,3%,5%,10%" : flags.regret;
  CUDABK_ASSIGN(const std::vector<double> bounds, fractions(given, 1.0, "--regret"));
  CUDABK_ASSIGN(const std::vector<double> margin, fractions(flags.margin, 1.0, "--margin"));
  if (!flags.write.empty() && (flags.regret.empty() || bounds.size() != 1)) {
    return invalid("--write needs one --regret: which of the fits is to be written?");
  }
  std::vector<Refit> fits;
  for (const double bound : bounds) {
    fits.push_back(
        refit_profile(journal, {bound, margin.front(), fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))}));
  }
  context.print(refit_text(fits));
  CUDABK_TRY(write_json(context, flags, refit_json(fits)));
  if (!flags.write.empty()) {
    Profile profile = fits.back().profile;
    profile.made_by = {{"cudabk", CUDABK_VERSION},
                       {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))}};
    CUDABK_TRY(context.write_document(flags.write, profile_to_json(profile)));
    context.print(fmt::format("written: {}\n", flags.write));
  }
  return success();
}

Status replay_journal(CliContext& context, const ReplayFlags& flags, const std::string& text) {
  CUDABK_ASSIGN(const TuneJournal journal, read_tune_journal(text, flags.file, context.profile_file));
  context.print(fmt::format("{}: {} timings of {} in {} table{}\n",
                            device_label(journal.device.name, journal.device.arch), journal.entries, journal.op,
                            journal.keys.size(), journal.keys.size() == 1 ? "" : "s"));
  if (journal.skipped_lines > 0) {
    context.notice(fmt::format("note: {} lines that are no timings were left out", journal.skipped_lines));
  }
  for (const std::string& line : journal.skipped) {
    context.notice("note: left out " + line);
  }
  if (journal.other_default > 0) {
    context.notice(
        fmt::format("note: {} shapes were tuned against another default than {} picks; name the profile of that "
                    "run with --profile before a fit is written",
                    journal.other_default, journal.base.source));
  }
  return flags.strategy.empty() ? replay_fit(context, flags, journal) : replay_strategy(context, flags, journal);
}

Status run(CliContext& context, const ReplayFlags& flags) {
  CUDABK_TRY(check_files({flags.json, flags.write}, {flags.file, flags.baseline}));
  std::error_code ec;
  if (std::filesystem::is_regular_file(flags.file, ec)) {
    CUDABK_ASSIGN(const std::string text, read_file(flags.file));
    if (is_tune_journal(text)) {
      return replay_journal(context, flags, text);
    }
  }
  if (!flags.strategy.empty() || !flags.regret.empty() || !flags.write.empty()) {
    return invalid(flags.file + ": --regret, --strategy and --write are for a tuner's journal; this is none");
  }
  if (flags.baseline.empty() && (!flags.thresholds.empty() || flags.force || flags.judge_unchanged)) {
    return invalid("--threshold, --force and --judge-unchanged are about verdicts; name a --baseline");
  }
  CUDABK_ASSIGN(const ResultSet set, load_results(flags.file));
  note_skipped(context, set);
  return flags.baseline.empty() ? replay_statistics_of(context, flags, set) : replay_verdicts_of(context, flags, set);
}

void add_result_options(CLI::App& command, ReplayFlags& flags) {
  const char* group = "A result";
  command.add_option("--confidence", flags.confidence, "of the median's interval (0.95)")->group(group);
  command.add_option("--precision", flags.precision, "wanted half width of the interval (1%)")->group(group);
  command.add_option("--min-samples", flags.min_samples, "fewer are marked, or inconclusive (20)")
      ->check(whole_number(2, kMostSamples))
      ->group(group);
  command.add_option("--first", flags.first, "as if sampling had ended after so many samples")
      ->check(whole_number(1, kMostSamples))
      ->group(group);
  command.add_option("--baseline", flags.baseline, "verdicts against this result or folder")->group(group);
  command.add_option("--threshold", flags.thresholds, "one or several, e.g. 1%,3% (1%,2%,3%,5%,10%)")->group(group);
  command.add_option("--gate-confidence", flags.gate_confidence, "of the verdicts (0.99)")->group(group);
  command.add_flag("--force", flags.force, "compare other devices, launch or cache modes and timers")->group(group);
  command.add_flag("--judge-unchanged", flags.judge_unchanged, "judge cases with identical code too")->group(group);
}

void add_journal_options(CLI::App& command, ReplayFlags& flags) {
  const char* group = "A journal of tune";
  command.add_option("--regret", flags.regret, "fit with these bounds, e.g. 2%,5% (1%,3%,5%,10%)")->group(group);
  command.add_option("--margin", flags.margin, "by which a variant must beat the default (1%)")->group(group);
  command.add_option("--write", flags.write, "the fitted profile; with one --regret")->group(group);
  command.add_option("--strategy", flags.strategy, "try halving, exhaustive, or both: halving,exhaustive")
      ->group(group);
  command.add_option("--top", flags.top, "--strategy: finalists per shape, e.g. 2,4,8 (4)")->group(group);
  command.add_option("--confirm", flags.confirm, "--strategy: paired rounds per finalist (20)")
      ->check(whole_number(6, 1000))
      ->group(group);
  command.add_option("--rounds", flags.rounds, "--strategy: independent runs (5)")
      ->check(whole_number(1, 1000))
      ->group(group);
  command.add_option("--seed", flags.seed, "--strategy: of the noise (1)")->check(check_seed)->group(group);
}

}  // namespace

void add_replay_command(CLI::App& app, CliContext& context) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* command = app.add_subcommand("replay", "statistics, verdicts, fits and searches again on saved samples");
  command->add_option("file", flags->file, "a result or a folder of them, or a journal of tune")->required();
  add_result_options(*command, *flags);
  add_journal_options(*command, *flags);
  add_output_option(*command, context, "--json", flags->json, "what is printed, as JSON (schema cudabk-replay/1)");
  command->footer(
      "Examples:\n  cudabk replay new.json --precision 0.5%\n"
      "  cudabk replay new.json --baseline base.json --threshold 1%,3%\n"
      "  cudabk replay tune.jsonl --regret 1%,3%,5%\n"
      "  cudabk replay tune.jsonl --regret 5% --write profile.json\n"
      "  cudabk replay tune.jsonl --strategy halving,exhaustive --top 2,4");
  set_handler(*command, context, [flags](CliContext& c) { return run(c, *flags); });
}

}  // namespace cudabk::cli
