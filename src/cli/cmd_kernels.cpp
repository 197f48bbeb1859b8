// cudabk kernels: the compiled variants and their cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "bench/kernel_sweep.h"
#include "bench/sweep.h"
#include "bench/table.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "core/units.h"

namespace cudabk::cli {
namespace {

constexpr int kLogLines = 12;  // of a failed variant, unless -v

struct KernelFlags {
  std::string archs;  // empty: the command's default
  VariantSelection selection;
  int jobs = 0;  // 0: as many as cores
  bool strict = false;
  std::string time_limit;
};

CompileOptions compile_options(const CliContext& context) {
  const DeviceOptions& device = context.device_options;
  return {device.cache_dir, device.cache_limit_bytes, device.toolkit_dir};
}

Result<std::vector<VariantJob>> select_jobs(const std::vector<std::string>& archs, const VariantSelection& selection) {
  std::vector<VariantJob> jobs;
  for (const std::string& arch : archs) {
    CUDABK_ASSIGN(const std::vector<KernelVariant> variants, kernel_variants(arch, selection));
    for (const KernelVariant& variant : variants) {
      jobs.push_back({arch, variant});
    }
  }
  if (jobs.empty()) {
    return Error{ErrorKind::kNothing, fmt::format("no variant matches --filter '{}'", selection.filter)};
  }
  return jobs;
}

// ---- list ----

Status list_kernels(CliContext& context, const KernelFlags& flags) {
  std::vector<std::string> archs;
  if (flags.archs.empty()) {
    CUDABK_ASSIGN(const Device* device, context.device());
    archs.push_back(device->info().arch);
  } else {
    CUDABK_ASSIGN(archs, split_words(flags.archs));
  }
  CUDABK_ASSIGN(const std::vector<VariantJob> jobs, select_jobs(archs, flags.selection));
  KernelCompiler compiler(compile_options(context));
  TextTable table({{"arch", false, 7},
                   {"registers"},
                   {"stack B"},
                   {"spills B"},
                   {"cached", false},
                   {"default", false},
                   {"variant", false}});
  context.print(table.header());
  size_t cached = 0;
  for (const VariantJob& job : jobs) {
    CUDABK_ASSIGN(const std::optional<CompiledKernel> kernel, compiler.cached(job.variant.key, job.arch));
    const std::string used = job.variant.by_default ? "yes" : "";
    const std::string variant = fmt::format("{}  ({})", job.variant.key.entry, job.variant.key.header);
    if (!kernel) {
      context.print(table.row({job.arch, "-", "-", "-", "no", used, variant}));
      continue;
    }
    ++cached;
    const KernelReport& r = kernel->report;
    context.print(table.row({job.arch, fmt::to_string(r.registers), fmt::to_string(r.local_bytes),
                             fmt::to_string(r.spill_store_bytes + r.spill_load_bytes), "yes", used, variant}));
  }
  context.print(fmt::format("{} variants, {} in the cache", jobs.size(), cached));
  if (cached < jobs.size()) {
    context.print(fmt::format("; `cudabk kernels build --arch {}` compiles the others", archs.front()));
  }
  context.print("\n");
  return success();
}

// ---- build ----

// The compiler's first lines: the error itself comes early.
std::string shortened(const std::string& text, int lines) {
  size_t end = 0;
  for (int i = 0; i < lines && end != std::string::npos; ++i) {
    end = text.find('\n', end == 0 ? 0 : end + 1);
  }
  return end == std::string::npos ? text : text.substr(0, end) + "\n...";
}

// "SPILLS sm_90a (a default) mmvq<...>: 16 bytes of stack, 8 bytes stored, 8 loaded, 255 registers\n"
std::string stack_line(const VariantResult& result) {
  const KernelVariant& variant = result.job.variant;
  const KernelReport& r = result.report;
  std::string spills;
  if (result.spills()) {
    spills = fmt::format("{} bytes stored, {} loaded, ", r.spill_store_bytes, r.spill_load_bytes);
  }
  return fmt::format("{} {} {}{}: {} bytes of stack, {}{} registers\n", result.spills() ? "SPILLS" : "STACK",
                     result.job.arch,
                     variant.by_default ? "(a default) "
                     : variant.sampled  ? "(a sample) "
                                        : "",
                     variant.key.entry, r.local_bytes, spills, r.registers);
}

// Progress, one line per variant that fails or uses local memory, and the totals.
class BuildReport {
 public:
  // limit_ns: after it only variants that profiles and defaults take are begun; 0: none.
  BuildReport(CliContext& context, size_t total, double limit_ns)
      : context_(context), total_(total), limit_ns_(limit_ns) {}

  bool add(const VariantResult& result) {
    ++done_;
    ++outcomes_[static_cast<size_t>(result.outcome)];
    const VariantJob& job = result.job;
    if (result.outcome == VariantOutcome::kFailed) {
      context_.show_progress("");
      context_.print(fmt::format("FAILED {} {}\n{}\n", job.arch, job.variant.key.entry,
                                 shortened(result.message, context_.verbose ? 1 << 20 : kLogLines)));
    } else if (result.spills() || result.keeps_array_on_stack()) {
      ++(result.spills() ? spilling_ : on_stack_);
      defects_ += result.is_defect() ? 1 : 0;
      context_.show_progress("");
      context_.print(stack_line(result));
    }
    const double left_s = elapsed_ns() * 1e-9 / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    context_.show_progress(
        fmt::format("[{}/{}, {} left] {} {}", done_, total_, format_left_s(left_s), job.arch, job.variant.key.entry));
    return !CliContext::interrupted() && !(limit_ns_ > 0 && elapsed_ns() > limit_ns_ && !job.variant.shipped);
  }

  std::string summary(size_t archs) const {
    return fmt::format(
        "{} of {} variants for {} architecture{}: {} compiled, {} from the cache, {} not applicable, "
        "{} failed, {} with spills, {} with arrays on the stack; {}\n",
        done_, total_, archs, archs == 1 ? "" : "s", count(VariantOutcome::kCompiled), count(VariantOutcome::kCached),
        count(VariantOutcome::kNotApplicable), count(VariantOutcome::kFailed), spilling_, on_stack_,
        format_time_ns(elapsed_ns()));
  }
  size_t count(VariantOutcome outcome) const { return outcomes_[static_cast<size_t>(outcome)]; }
  size_t defects() const { return defects_; }
  size_t left_out() const { return total_ - done_; }

 private:
  double elapsed_ns() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
  }

  CliContext& context_;
  size_t total_, done_ = 0, spilling_ = 0, on_stack_ = 0, defects_ = 0;
  size_t outcomes_[4] = {};
  double limit_ns_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// What profiles and defaults take comes first; the order of the others depends on the seed, so that runs which end at a
// time limit do not always leave out the same ones.
void order_for_time_limit(std::vector<VariantJob>& jobs, uint64_t seed) {
  const auto others =
      std::stable_partition(jobs.begin(), jobs.end(), [](const VariantJob& j) { return j.variant.shipped; });
  std::shuffle(others, jobs.end(), std::mt19937_64(seed));
}

Status build_kernels(CliContext& context, const KernelFlags& flags) {
  std::vector<std::string> archs(std::begin(kArchitectures), std::end(kArchitectures));
  if (!flags.archs.empty()) {
    CUDABK_ASSIGN(archs, split_words(flags.archs));
  }
  CUDABK_ASSIGN(std::vector<VariantJob> jobs, select_jobs(archs, flags.selection));
  double limit_ns = 0;
  if (!flags.time_limit.empty()) {
    Result<double> limit = parse_budget_s(flags.time_limit);
    if (!limit.ok()) {
      return std::move(limit).error().with_context("--time-limit");
    }
    limit_ns = *limit * 1e9;
    order_for_time_limit(jobs, flags.selection.seed);
  }
  KernelCompiler compiler(compile_options(context));
  const int threads = flags.jobs > 0 ? flags.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  BuildReport report(context, jobs.size(), limit_ns);
  CUDABK_TRY(build_variants(compiler, jobs, threads, [&](const VariantResult& result) { return report.add(result); }));
  context.show_progress("");
  context.print(report.summary(archs.size()));
  if (CliContext::interrupted()) {
    return Error{ErrorKind::kInterrupted, "interrupted; what was compiled is kept in the cache"};
  }
  if (report.left_out() > 0) {
    context.print(fmt::format("{} variants were not reached in {}; without --time-limit all are\n", report.left_out(),
                              flags.time_limit));
  }
  if (const size_t failed = report.count(VariantOutcome::kFailed); failed > 0) {
    return internal_error(fmt::format("{} variants do not compile", failed));
  }
  if (flags.strict && report.defects() > 0) {
    return internal_error(fmt::format(
        "{} of the variants that profiles, default configurations or instance lists name use local memory (--strict)",
        report.defects()));
  }
  return success();
}

// ---- clean ----

Status clean_kernels(CliContext& context) {
  KernelCompiler compiler(compile_options(context));
  if (compiler.cache() == nullptr) {
    context.print("the kernel cache is disabled\n");
    return success();
  }
  CUDABK_ASSIGN(const int64_t bytes, compiler.cache()->clear());
  context.print(
      fmt::format("{}: {} removed\n", compiler.cache()->folder().string(), format_bytes(static_cast<double>(bytes))));
  return success();
}

// Only that there is one: which there are is checked where they are used.
std::string check_archs(const std::string& text) {
  return text.empty() ? fmt::format("names no architecture; valid: {}", fmt::join(kArchitectures, ", ")) : "";
}

void add_filter_option(CLI::App& command, KernelFlags& flags) {
  command.add_option("--filter", flags.selection.filter, "only variants whose \"header entry\" matches this regex");
  command
      .add_option("--sample-count", flags.selection.samples, "also N variants from the search spaces, drawn at random")
      ->check(whole_number(0, 1000000));
  command.add_option("--sample-seed", flags.selection.seed, "of --sample-count")->capture_default_str();
}

}  // namespace

void add_kernels_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("kernels", "compiled variants: list, build ahead without a GPU, clean");
  command->require_subcommand(1);
  const auto flags = std::make_shared<KernelFlags>();

  command->footer(
      "Examples:\n"
      "  cudabk kernels build --arch sm_90a\n"
      "  cudabk kernels list --arch sm_90a --filter mmvq");

  CLI::App* list = command->add_subcommand(
      "list", "variants with registers, stack and spills; default: a profile or default configuration takes it");
  list->add_option("--arch", flags->archs, "architectures, a,b,c (default: the device's)")->check(check_archs);
  add_filter_option(*list, *flags);
  set_handler(*list, context, [flags](CliContext& ctx) { return list_kernels(ctx, *flags); });

  CLI::App* build = command->add_subcommand("build", "compile every variant into the cache; needs no GPU");
  build->add_option("--arch", flags->archs, "architectures, a,b,c (default: all that are supported)")
      ->check(check_archs);
  build->add_option("--jobs,-j", flags->jobs, "variants compiled at a time (default: one per core)")
      ->check(whole_number(1, 1024));
  build->add_flag("--strict", flags->strict,
                  "local memory is a failure: arrays on the stack in any variant that is named somewhere, spilled "
                  "registers in what a profile or a default configuration takes");
  build->add_option("--time-limit", flags->time_limit,
                    "e.g. 8m: then no more variants, except those that profiles and defaults take");
  add_filter_option(*build, *flags);
  build->footer(
      "Examples:\n  cudabk kernels build --arch sm_90a\n"
      "  cudabk kernels build --arch sm_75,sm_80 --filter mmvq --sample-count 24");
  set_handler(*build, context, [flags](CliContext& ctx) { return build_kernels(ctx, *flags); });

  CLI::App* clean = command->add_subcommand("clean", "remove every compiled kernel from the cache");
  set_handler(*clean, context, clean_kernels);
}

}  // namespace cudabk::cli
