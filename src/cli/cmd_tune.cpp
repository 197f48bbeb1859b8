// cudabk tune: search variants, confirm finalists, fit and write a profile.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <tuple>

#include "bench/cases.h"
#include "bench/shapes.h"
#include "bench/sweep.h"
#include "bench/type_word.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/outputs.h"
#include "core/file.h"
#include "core/units.h"
#include "device/cuda/compile.h"
#include "device/label.h"
#include "formats/frag_shape.h"
#include "tuning/device_bench.h"
#include "tuning/family_set.h"
#include "tuning/isolate.h"
#include "tuning/tuner.h"

namespace cudabk::cli {
namespace {

struct TuneFlags {
  std::string target = "mulmat";
  std::string types, m, n, k, shapes;
  std::string strategy = "halving", margin = "1%", regret = "3%", budget, hang = "120s";
  size_t top = 4;
  int64_t confirm = 20;
  uint64_t seed = 42;
  std::string layout = "auto";
  std::string write, journal, json;
  bool dry_run = false, fresh = false, isolate = false, announce = false, no_check = false, list = false;
};

std::string tunable_ops() {
  std::string names;
  for (const OpDef* op : all_ops()) {
    if (!op->families().empty()) {
      names += names.empty() ? "" : ", ";
      names += op->name();
    }
  }
  return names;
}

Result<const OpDef*> tunable_op(const std::string& name) {
  CUDABK_ASSIGN(const OpDef* op, find_op(name));
  if (op->families().empty()) {
    return invalid(fmt::format("{} has one kernel only: there is nothing to tune; ops that can be tuned: {}",
                               op->name(), tunable_ops()));
  }
  return op;
}

std::vector<int64_t> values_of(const std::vector<TuneShape>& shapes, size_t dim) {
  std::vector<int64_t> values;
  for (const TuneShape& s : shapes) {
    if (std::find(values.begin(), values.end(), s[dim].second) == values.end()) {
      values.push_back(s[dim].second);
    }
  }
  return values;
}

// The default shapes, with the sizes given on the command line in place of the default ones.
Result<std::vector<TuneShape>> shapes_of(const TuneFlags& flags, const DeviceInfo& device) {
  const std::vector<TuneShape> defaults = default_tune_shapes(device);
  std::vector<int64_t> n = values_of(defaults, 1);
  if (!flags.n.empty()) {
    CUDABK_ASSIGN(n, parse_sweep(flags.n));
  }
  std::vector<std::pair<int64_t, int64_t>> m_k;
  const auto add = [&](int64_t m, int64_t k) {
    if (std::find(m_k.begin(), m_k.end(), std::pair(m, k)) == m_k.end()) {
      m_k.emplace_back(m, k);
    }
  };
  if (!flags.shapes.empty()) {
    CUDABK_ASSIGN(const std::vector<std::string> models, split_words(flags.shapes));
    for (const std::string& name : models) {
      CUDABK_ASSIGN(const ModelShapes model, find_shapes(name));
      for (const MatrixShape& s : model.mul_mat) {
        add(s.m, s.k);
      }
    }
  } else if (flags.m.empty() && flags.k.empty()) {
    for (const TuneShape& s : defaults) {
      add(s[0].second, s[2].second);
    }
  } else {
    std::vector<int64_t> m = {defaults[0][0].second}, k = {defaults[0][2].second};
    if (!flags.m.empty()) {
      CUDABK_ASSIGN(m, parse_sweep(flags.m));
    }
    if (!flags.k.empty()) {
      CUDABK_ASSIGN(k, parse_sweep(flags.k));
    }
    for (const int64_t rows : m) {
      for (const int64_t length : k) {
        add(rows, length);
      }
    }
  }
  const std::vector<TuneShape> shapes = cross_shapes(m_k, n);
  for (const TuneShape& s : shapes) {
    for (const auto& [name, extent] : s) {
      if (extent < 1) {
        return invalid(fmt::format("-{} is {}: a product of no elements has nothing to tune", name, extent));
      }
    }
  }
  return shapes;
}

Result<std::vector<std::string>> keys_of(const TuneFlags& flags, const OpDef& op, const DeviceInfo& device) {
  const auto axis = std::find_if(op.axes().begin(), op.axes().end(), [](const Axis& a) { return a.name == "type"; });
  if (axis == op.axes().end()) {
    return invalid(
        fmt::format("tune is for products of a weight type (mul_mat); for {}, measure with `bench {} --variant "
                    "full` and write the rules by hand (docs/profile-schema.md)",
                    op.name(), op.name()));
  }
  std::vector<std::string> keys;
  if (flags.types.empty()) {
    keys = device.emulated ? axis->host_values : axis->allowed;
    return keys;
  }
  CUDABK_ASSIGN(const std::vector<std::string> words, split_words(flags.types));
  for (const std::string& word : words) {
    Result<std::string> key = match_type(op.name(), word, axis->allowed);
    if (!key.ok()) {
      return std::move(key).error().with_context("--type");
    }
    keys.push_back(std::move(key).value());
  }
  return keys;
}

// Every case must build: a k that is not a multiple of the block is a mistake on the command line.
Status check_shapes(const OpDef& op, const TuneOptions& options) {
  for (const std::string& key : options.keys) {
    for (const TuneShape& shape : options.shapes) {
      Graph graph;
      if (Result<Tensor*> t = op.build(graph, tune_case(key, shape)); !t.ok()) {
        return std::move(t).error();
      }
    }
  }
  return success();
}

Result<TuneOptions> options_of(CliContext& context, const TuneFlags& flags, const OpDef& op, const DeviceInfo& device) {
  TuneOptions options;
  options.op = std::string(op.name());
  CUDABK_ASSIGN(options.keys, keys_of(flags, op, device));
  CUDABK_ASSIGN(options.shapes, shapes_of(flags, device));
  if (!flags.no_check) {
    options.unseen = unseen_shapes(options.shapes);
  }
  CUDABK_ASSIGN(options.search.strategy, parse_strategy(flags.strategy));
  options.search.top = flags.top;
  options.confirm_rounds = flags.confirm;
  for (const auto& [flag, text, target] : {std::tuple("--margin", &flags.margin, &options.margin),
                                           std::tuple("--regret", &flags.regret, &options.regret)}) {
    Result<double> fraction = parse_fraction(*text, 1.0);
    if (!fraction.ok()) {
      return std::move(fraction).error().with_context(flag);
    }
    *target = *fraction;
  }
  if (!flags.budget.empty()) {
    Result<double> budget = parse_budget_s(flags.budget);
    if (!budget.ok()) {
      return std::move(budget).error().with_context("--budget");
    }
    options.budget_s = *budget;
  }
  options.announce = flags.announce;
  options.sampler.interrupted = &CliContext::interrupted();
  options.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  options.progress = [&context](std::string_view line) { context.show_progress(line); };
  options.notice = [&context](std::string_view line) { context.notice(line); };
  CUDABK_TRY(check_shapes(op, options));
  return options;
}

std::string default_journal(const CliContext& context, const DeviceInfo& device) {
  std::string name = profile_file_name(device);
  name.replace(name.rfind(".json"), std::string::npos, ".jsonl");
  const std::string& folder = context.device_options.cache_dir;
  return folder.empty() ? "tune-" + name : folder + "/tune-" + name;
}

void print_key(CliContext& context, const std::string& op, const KeyReport& r) {
  context.print(fmt::format("\n{} {}: {} of {} shapes measured, {} unseen checked\n", op, r.key,
                            std::min(r.points.size(), r.shapes_planned), r.shapes_planned, r.checked));
  for (size_t i = 0; i < r.table.rules.size(); ++i) {
    const Rule& rule = r.table.rules[i];
    context.print(fmt::format("  {} {}\n", i < r.new_rules ? "new    " : "default", rule_text(rule)));
    if (!rule.evidence.empty()) {
      context.print(fmt::format("          {}\n", rule.evidence));
    }
  }
  if (!r.points.empty()) {
    context.print(fmt::format(
        "  regret against the best per shape: median {:.1f} %, p95 {:.1f} %, max {:.1f} % (defaults: median {:.1f} %, "
        "max {:.1f} %); worst against the default {:+.1f} %\n",
        100 * r.fit.regret_median, 100 * r.fit.regret_p95, 100 * r.fit.regret_max, 100 * r.fit.default_regret_median,
        100 * r.fit.default_regret_max, 100 * (r.worst_ratio - 1)));
  }
}

void print_report(CliContext& context, const std::string& op, const TuneReport& report) {
  context.show_progress("");
  for (const KeyReport& key : report.keys) {
    print_key(context, op, key);
  }
  for (const JournalEntry& e : report.quarantined) {
    context.print(
        fmt::format("quarantined: {} {} {} {}: {}\n", e.op, e.key, shape_label(e.shape), e.candidate.text(), e.reason));
  }
  for (const std::string& line : report.skipped) {
    context.print(fmt::format("skipped: {}\n", line));
  }
  context.print(fmt::format("{} timings, {} more from the journal\n", report.timings, report.reused));
  if (!report.complete) {
    context.print("not complete: what was not measured keeps the defaults; run again to go on\n");
  }
}

void add_made_by(CliContext& context, const DeviceInfo& device, const std::string& date, TuneReport& report) {
  std::map<std::string, std::string> made_by = {{"cudabk", CUDABK_VERSION}, {"date", date}};
  if (!device.driver_text.empty()) {
    made_by["driver"] = device.driver_text;
  }
  const DeviceOptions& d = context.device_options;
  KernelCompiler compiler({d.cache_dir, d.cache_limit_bytes, d.toolkit_dir});
  if (const Result<std::string> version = compiler.compiler_version(); version.ok()) {
    made_by["cuda"] = *version;
  }
  report.profile.made_by = made_by;
  report.changes.made_by = made_by;
}

// The profile to write or merge into: the file named, or this user's for the device.
Result<std::string> target_file(const CliContext& context, const TuneFlags& flags, const DeviceInfo& device) {
  if (!flags.write.empty()) {
    return flags.write;
  }
  if (context.profile_dir.empty()) {
    return invalid("there is no folder for profiles (HOME is not set): name a file with --write");
  }
  return context.profile_dir + "/" + profile_file_name(device);
}

Status write_profile(CliContext& context, const TuneFlags& flags, const DeviceInfo& device, const TuneReport& report) {
  if (!flags.json.empty()) {
    CUDABK_TRY(context.write_document(flags.json, profile_to_json(report.profile)));
  }
  if (flags.dry_run) {
    context.print("nothing written (--dry-run)\n");
    return success();
  }
  CUDABK_ASSIGN(const std::string path, target_file(context, flags, device));
  CUDABK_ASSIGN(const Profile written, update_profile_file(path, report.profile, report.changes, family_set()));
  for (const std::string& warning : written.warnings) {
    context.notice("warning: " + warning);
  }
  context.print(fmt::format("written: {}\n", path));
  return success();
}

// A file named with --write is merged into, or new. What is no profile stays as it is, and the tuning is not begun; nor
// is it where nothing could be written at its end.
Status check_write(const CliContext& context, const TuneFlags& flags, const DeviceInfo& device) {
  CUDABK_TRY(check_files({flags.json, flags.journal}));
  if (!flags.dry_run) {
    CUDABK_ASSIGN(const std::string target, target_file(context, flags, device));
    if (flags.write.empty()) {  // this program's own folder
      std::error_code shown_when_written;
      std::filesystem::create_directories(context.profile_dir, shown_when_written);
    }
    CUDABK_TRY(check_files({flags.json, flags.journal, target}));
  }
  const std::string& path = flags.write;
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) {
    return success();
  }
  CUDABK_ASSIGN(const std::string text, read_file(path));
  Result<Profile> present = parse_profile(text, path, family_set(), ParseMode::kLenient);
  const std::string what = fmt::format("--write: {} exists and cannot be merged into", path);
  if (!present.ok()) {
    return std::move(present).error().with_context(what);
  }
  const std::string why = device_mismatch(present->device, device);
  return why.empty() ? success() : Status(invalid(what + ": " + why));
}

// The defaults that tuning starts from and measures against: not what an earlier run wrote for this user. --layout
// becomes part of it, where a type has that layout.
Result<Profile> base_profile(CliContext& context, const DeviceInfo& device, const TuneFlags& flags,
                             const TuneOptions& options) {
  CUDABK_ASSIGN(const Profile found, find_profile(device, context.profile_file, "", family_set()));
  Profile base = without_tuned_rules(found);
  CUDABK_ASSIGN(const std::string layout, match_word("--layout", flags.layout, {"auto", "raw", "frag"}));
  for (const std::string& key : options.keys) {
    CUDABK_ASSIGN(const DType type, parse_dtype(key));
    if (layout != "auto" && (layout == "raw" || frag_shape(type).exists())) {
      base.layouts[key] = layout;
    }
  }
  return base;
}

Status list(CliContext& context, const TuneOptions& options) {
  for (const std::string& key : options.keys) {
    for (const TuneShape& shape : options.shapes) {
      context.print(fmt::format("{} {} {}\n", options.op, key, shape_label(shape)));
    }
    for (const TuneShape& shape : options.unseen) {
      context.print(fmt::format("{} {} {} (checked after the fit)\n", options.op, key, shape_label(shape)));
    }
  }
  return success();
}

// This command again, as a child that announces each candidate in the journal.
Status run_isolated(CliContext& context, const TuneFlags& flags, const std::string& journal) {
  SuperviseOptions options;
  options.command = {"/proc/self/exe"};
  for (const std::string& word : context.arguments) {
    if (word != "--isolate") {
      options.command.push_back(word);
    }
  }
  options.command.push_back("--announce");
  if (flags.fresh) {  // only the first child starts afresh
    CUDABK_ASSIGN(const Journal emptied, Journal::open(journal, true));
    std::erase(options.command, "--fresh");
  }
  options.environment = environ;
  options.journal = journal;
  CUDABK_ASSIGN(options.hang_s, parse_duration_s(flags.hang));
  options.interrupted = &CliContext::interrupted();
  options.notice = [&context](std::string_view line) { context.notice(line); };
  CUDABK_ASSIGN(const int status, supervise(options));
  const std::pair<int, ErrorKind> kinds[] = {{2, ErrorKind::kInvalid},      {3, ErrorKind::kInconclusive},
                                             {4, ErrorKind::kNothing},      {5, ErrorKind::kWrongOutput},
                                             {6, ErrorKind::kUnfit},        {70, ErrorKind::kInternal},
                                             {130, ErrorKind::kInterrupted}};
  for (const auto& [code, kind] : kinds) {
    if (status == code) {
      context.note(kind);  // the child has said why
    }
  }
  if (CliContext::interrupted()) {
    context.note(ErrorKind::kInterrupted);
  }
  return success();
}

Status run(CliContext& context, const TuneFlags& flags) {
  if (flags.announce) {
    end_with_supervisor();
  }
  CUDABK_ASSIGN(const OpDef* op, tunable_op(flags.target));
  CUDABK_ASSIGN(Device * device, context.device());
  const DeviceInfo& info = device->info();
  CUDABK_ASSIGN(const TuneOptions options, options_of(context, flags, *op, info));
  if (flags.list) {
    return list(context, options);
  }
  CUDABK_TRY(check_write(context, flags, info));
  const std::string journal_file = flags.journal.empty() ? default_journal(context, info) : flags.journal;
  if (flags.isolate) {
    return run_isolated(context, flags, journal_file);
  }
  CUDABK_ASSIGN(const Profile base, base_profile(context, info, flags, options));
  CUDABK_ASSIGN(Journal journal, Journal::open(journal_file, flags.fresh));
  CUDABK_ASSIGN(const auto factory, DeviceBenchFactory::create(*device, *op, base, flags.seed));
  context.print(fmt::format("{}, {} SMs; defaults: {}; journal: {} ({} entries)\n", device_label(info.name, info.arch),
                            info.sm_count, base.source, journal_file, journal.size()));
  if (journal.skipped_lines() > 0) {
    context.notice(
        fmt::format("note: {} lines of the journal are no timings and were left out", journal.skipped_lines()));
  }
  if (info.emulated) {
    context.print("times are the emulator's: the profile is for the emulated device only\n");
  }
  Result<TuneReport> report = tune(*factory, base, journal, options);
  if (!report.ok()) {
    context.show_progress("");
    return std::move(report).error();
  }
  add_made_by(context, info, options.date, *report);
  print_report(context, options.op, *report);
  const bool wrong = std::any_of(report->quarantined.begin(), report->quarantined.end(),
                                 [](const JournalEntry& e) { return e.reason.find("NMSE") != std::string::npos; });
  if (wrong) {
    context.note(ErrorKind::kWrongOutput);
  }
  if (CliContext::interrupted()) {
    context.note(ErrorKind::kInterrupted);
  }
  return write_profile(context, flags, info, *report);
}

}  // namespace

void add_tune_command(CLI::App& app, CliContext& context) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand("tune", "search variants, confirm finalists, fit and write a profile");
  command->add_option("target", flags->target, "the op to tune (default mulmat): " + tunable_ops());
  command->add_option("--type", flags->types, "types, e.g. q4_K,f16 (default: all; one on the emulated device)");
  command->add_option("-m", flags->m, "rows of the weights");
  command->add_option("-n", flags->n, "columns");
  command->add_option("-k", flags->k, "length of a weight row");
  command->add_option("--layout", flags->layout,
                      "of the weights: auto (the profile's, default), raw, frag; written too");
  command->add_option("--shapes", flags->shapes, "the matrices of real models (`cudabk list shapes`)");
  command->add_option("--strategy", flags->strategy, "halving (default), exhaustive")
      ->check(one_of({"halving", "exhaustive"}));
  command->add_option("--top", flags->top, "finalists per shape (4)")->check(whole_number(1, 64));
  command->add_option("--confirm", flags->confirm, "paired rounds per finalist (20)")->check(whole_number(6, 1000));
  command->add_option("--margin", flags->margin, "by which a finalist must beat the default (1%)");
  command->add_option("--regret", flags->regret, "that a rule may cost against the best of a shape (3%)");
  command->add_option("--budget", flags->budget, "for the whole command, e.g. 10m");
  command->add_flag("--no-check", flags->no_check, "do not measure unseen shapes after the fit");
  command->add_flag("--isolate", flags->isolate, "in a child process, restarted when a candidate brings it down");
  command->add_option("--hang", flags->hang, "--isolate: a candidate that takes longer is killed (120s)");
  command->add_option("--journal", flags->journal, "file with every timing (default: in the cache folder)");
  command->add_flag("--fresh", flags->fresh, "forget the journal's earlier timings");
  command->add_flag_callback(
      "--resume", [flags] { flags->fresh = false; }, "go on with the journal's earlier timings (default)");
  command->add_option("--seed", flags->seed, "of the random data (42)")->check(check_seed);
  command->add_option("--write", flags->write, "profile to write or merge into (default: this user's)");
  command->add_flag("--dry-run", flags->dry_run, "write nothing");
  command->add_flag("--list", flags->list, "only list the shapes");
  command->add_flag("--announce", flags->announce, "")->group("");
  add_output_option(*command, context, "--json", flags->json, "the profile");
  command->footer(
      "Examples:\n"
      "  cudabk tune mulmat --budget 10m\n"
      "  cudabk tune mulmat --type q4_K,q6_K --shapes llama-3.1-8b --write h200.json\n"
      "  cudabk tune mulmat --type q4_K -m 64 -k 256 -n 1,8 --dry-run");
  set_handler(*command, context, [flags](CliContext& c) { return run(c, *flags); });
}

}  // namespace cudabk::cli
