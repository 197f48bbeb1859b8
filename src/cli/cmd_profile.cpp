// cudabk profile: work on dispatch tables.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "core/file.h"
#include "ops/op_def.h"
#include "tuning/device_bench.h"
#include "tuning/family_set.h"

namespace cudabk::cli {
namespace {

struct ProfileFlags {
  std::vector<std::string> files;
  std::string out, json;
  bool code = false, dry_run = false;
};

Result<Profile> load(const std::string& file, ParseMode mode = ParseMode::kStrict) {
  CUDABK_ASSIGN(const std::string text, read_file(file));
  return parse_profile(text, file, family_set(), mode);
}

std::string device_text(const Profile::DeviceKey& d) {
  return d.name == "*" ? fmt::format("every {} GPU", d.arch)
                       : fmt::format("{} ({}, {} SMs, {} bytes of L2)", d.name, d.arch, d.sm_count, d.l2_bytes);
}

std::string profile_text(const Profile& p) {
  std::string text = fmt::format("source    {}\n", p.source);
  if (!p.why.empty()) {
    text += fmt::format("in use    {}\n", p.why);
  }
  text += fmt::format("device    {}\n", device_text(p.device));
  for (const auto& [name, value] : p.made_by) {
    text += fmt::format("made by   {} {}\n", name, value);
  }
  for (const auto& [op, by_key] : p.tables) {
    for (const auto& [key, table] : by_key) {
      text += fmt::format("\n{} {}\n", op, key == "*" ? "* (types without a table of their own)" : key);
      for (size_t i = 0; i < table.rules.size(); ++i) {
        const Rule& rule = table.rules[i];
        text += fmt::format("  #{:<3}{}{}\n", i, rule_text(rule), rule.stale ? "  [stale]" : "");
        if (!rule.evidence.empty()) {
          text += fmt::format("       {}\n", rule.evidence);
        }
      }
    }
  }
  text += "\nconstants\n";
  for (const auto& [name, value] : p.constants) {
    text += fmt::format("  {:<22}{}\n", name, value);
  }
  if (!p.evidence.empty()) {
    text += "\nevidence\n";
    for (const auto& [name, value] : p.evidence) {
      text += fmt::format("  {:<24}{}\n", name, value);
    }
  }
  for (const std::string& warning : p.warnings) {
    text += "warning   " + warning + "\n";
  }
  return text;
}

// Marks rules whose code changed; compiles each variant named by a rule.
Status check_code(CliContext& context, Profile& profile) {
  CUDABK_ASSIGN(Device * device, context.device());
  if (const std::string why = device_mismatch(profile.device, device->info()); !why.empty()) {
    return invalid(fmt::format("{}: --code: {}", profile.source, why));
  }
  size_t untold = 0;
  std::string first;
  mark_stale(profile, [&](const std::string& op_name, const std::string& key, const Rule& rule) {
    const Result<const OpDef*> op = find_op(op_name);
    std::string code = op.ok() ? rule_code(*device, **op, profile, key, rule) : std::string();
    if (code.empty() && untold++ == 0) {
      first = fmt::format("{} {} {}", op_name, key, rule_text(rule));
    }
    return code;
  });
  if (untold > 0) {
    profile.warnings.push_back(
        fmt::format("{}: --code: {} code hashes were not compared, since those kernels cannot be made "
                    "here; the first: {}",
                    profile.source, untold, first));
  }
  return success();
}

Status show(CliContext& context, const ProfileFlags& flags) {
  Profile profile;
  if (flags.files.empty()) {
    CUDABK_ASSIGN(const Profile* in_use, context.profile());
    profile = *in_use;
  } else {
    CUDABK_ASSIGN(profile, load(flags.files[0]));
  }
  if (flags.code) {
    CUDABK_TRY(check_code(context, profile));
  }
  if (!flags.json.empty()) {
    CUDABK_TRY(context.write_document(flags.json, profile_to_json(profile)));
  }
  context.print(profile_text(profile));
  return success();
}

Status lint(CliContext& context, const ProfileFlags& flags) {
  for (const std::string& file : flags.files) {
    Result<Profile> profile = load(file);
    if (!profile.ok()) {
      context.note_error(profile.error());
      continue;
    }
    if (flags.code) {
      CUDABK_TRY(check_code(context, *profile));
    }
    size_t tables = 0, rules = 0;
    for (const auto& [op, by_key] : profile->tables) {
      for (const auto& [key, table] : by_key) {
        ++tables;
        rules += table.rules.size();
      }
    }
    std::vector<std::string> notes = profile->warnings;
    Profile copy = *profile;
    for (const std::string& dead : prune_profile(copy, family_set())) {
      notes.push_back(file + ": never wins: " + dead);
    }
    for (const std::string& note : notes) {
      context.print("warning: " + note + "\n");
    }
    context.print(fmt::format("{}: ok, {} tables, {} rules, {}\n", file, tables, rules, device_text(profile->device)));
  }
  return success();
}

Status diff(CliContext& context, const ProfileFlags& flags) {
  CUDABK_ASSIGN(const Profile a, load(flags.files[0], ParseMode::kLenient));
  CUDABK_ASSIGN(const Profile b, load(flags.files[1], ParseMode::kLenient));
  const std::vector<std::string> lines = diff_profiles(a, b);
  for (const std::string& line : lines) {
    context.print(line + "\n");
  }
  if (lines.empty()) {
    context.print("no differences in device, rules or constants\n");
  }
  return success();
}

Status merge(CliContext& context, const ProfileFlags& flags) {
  CUDABK_ASSIGN(const Profile a, load(flags.files[0]));
  CUDABK_ASSIGN(const Profile b, load(flags.files[1]));
  CUDABK_ASSIGN(const Profile merged, merge_profiles(a, b));
  CUDABK_TRY(context.write_document(flags.out, profile_to_json(merged)));
  for (const std::string& line : diff_profiles(a, merged)) {
    context.print(line + "\n");
  }
  return success();
}

Status prune(CliContext& context, const ProfileFlags& flags) {
  const std::string& file = flags.files[0];
  CUDABK_ASSIGN(Profile profile, load(file, ParseMode::kLenient));
  std::vector<std::string> dropped = profile.warnings;  // what could not be read is gone as well
  const std::vector<std::string> dead = prune_profile(profile, family_set());
  dropped.insert(dropped.end(), dead.begin(), dead.end());
  for (const std::string& line : dropped) {
    context.print("dropped " + line + "\n");
  }
  if (dropped.empty()) {
    context.print("every rule can win; nothing to drop\n");
  }
  if (flags.dry_run || (dropped.empty() && flags.out.empty())) {
    return success();
  }
  return context.write_document(flags.out.empty() ? file : flags.out, profile_to_json(profile));
}

}  // namespace

void add_profile_command(CLI::App& app, CliContext& context) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command = app.add_subcommand("profile", "dispatch tables: show, lint, diff, merge, prune");
  command->footer(
      "Examples:\n"
      "  cudabk profile show\n"
      "  cudabk profile lint profiles/sm_90a.json\n"
      "  cudabk profile diff old.json new.json\n"
      "  cudabk profile merge base.json tuned.json -o merged.json");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int min_files, int max_files,
                       Status (*handler)(CliContext&, const ProfileFlags&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    CLI::Option* files = sub->add_option("files", flags->files, "profile files");
    files->expected(min_files, max_files);
    if (min_files > 0) {
      files->required();
    }
    set_handler(*sub, context, [flags, handler](CliContext& c) { return handler(c, *flags); });
    return sub;
  };
  CLI::App* show_command = add("show", "print a file, or the profile in use", 0, 1, show);
  add_output_option(*show_command, context, "--json", flags->json, "the profile as JSON");
  show_command->add_flag("--code", flags->code, "compare code hashes with this build (compiles)");
  CLI::App* lint_command = add("lint", "check files: exit 2 with path and reason", 1, 1000, lint);
  lint_command->add_flag("--code", flags->code, "compare code hashes with this build (compiles)");
  add("diff", "what differs between two files", 2, 2, diff);
  CLI::App* merge_command = add("merge", "the second file's tables over the first's", 2, 2, merge);
  add_output_option(*merge_command, context, "-o,--out", flags->out, "file to write")->required();
  CLI::App* prune_command = add("prune", "drop rules that can never win", 1, 1, prune);
  add_output_option(*prune_command, context, "-o,--out", flags->out, "file to write; default: in place");
  prune_command->add_flag("--dry-run", flags->dry_run, "only say what would be dropped");
}

}  // namespace cudabk::cli
