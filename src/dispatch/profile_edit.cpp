// Profiles: stale rules, merging, pruning, differences.
#include <fmt/format.h>

#include <algorithm>

#include "core/file.h"
#include "dispatch/profile.h"

namespace cudabk {

std::string rule_text(const Rule& rule) {
  std::string when;
  for (const auto& [name, i] : rule.when) {
    const std::string high = i.high == INT64_MAX ? "" : std::to_string(i.high);
    when += fmt::format("{}{} {}", when.empty() ? "" : ", ", name,
                        i.low == i.high ? high : fmt::format("{}..{}", i.low, high));
  }
  const std::string config = config_text(rule.config);
  return fmt::format("{}: {}{}{}", when.empty() ? "any" : when, rule.use, config.empty() ? "" : " ", config);
}

int mark_stale(Profile& profile, const CodeHashOf& hash_of) {
  int count = 0;
  for (auto& [op, by_key] : profile.tables) {
    for (auto& [key, table] : by_key) {
      for (size_t i = 0; i < table.rules.size(); ++i) {
        Rule& rule = table.rules[i];
        const std::string now = rule.code.empty() ? "" : hash_of(op, key, rule);
        rule.stale = !now.empty() && now != rule.code;
        if (rule.stale) {
          ++count;
          profile.warnings.push_back(
              fmt::format("{}: /tables/{}/{}/{}: stale: the code of {} changed since it was measured; it is used, and "
                          "`cudabk tune` re-checks it",
                          profile.source, op, key, i, rule.use));
        }
      }
    }
  }
  return count;
}

namespace {

std::string key_difference(const Profile::DeviceKey& a, const Profile::DeviceKey& b) {
  if (a.name != b.name) {
    return fmt::format("device \"{}\" and \"{}\"", a.name, b.name);
  }
  if (a.arch != b.arch) {
    return fmt::format("architecture {} and {}", a.arch, b.arch);
  }
  if (a.sm_count != b.sm_count) {
    return fmt::format("{} and {} multiprocessors", a.sm_count, b.sm_count);
  }
  if (a.l2_bytes != b.l2_bytes) {
    return fmt::format("{} and {} bytes of L2", a.l2_bytes, b.l2_bytes);
  }
  return "";
}

bool covers(const Rule& outer, const Rule& inner) {
  return std::all_of(outer.when.begin(), outer.when.end(), [&](const auto& condition) {
    const auto same = [&](const auto& other) { return other.first == condition.first; };
    const auto it = std::find_if(inner.when.begin(), inner.when.end(), same);
    return it != inner.when.end() && condition.second.low <= it->second.low && condition.second.high >= it->second.high;
  });
}

// "" when every parameter of the rule exists with that value.
std::string gone(const Family& family, const Rule& rule) {
  for (const auto& [name, value] : rule.config) {
    const ConfigParam* p = find_param(family, name);
    if (p == nullptr) {
      return fmt::format("{} has no parameter {}", family.name, name);
    }
    if (value != p->fallback && std::find(p->values.begin(), p->values.end(), value) == p->values.end()) {
      return fmt::format("{} has no variant with {} = {}", family.name, name, value);
    }
  }
  return "";
}

std::string why_dead(const Table& table, size_t index, std::span<const Family> families) {
  const Rule& rule = table.rules[index];
  const Family* family = find_family(families, rule.use);
  if (family == nullptr) {
    return fmt::format("no family {} in this build", rule.use);
  }
  if (std::string why = gone(*family, rule); !why.empty()) {
    return why;
  }
  for (size_t i = 0; i < index; ++i) {
    const Rule& earlier = table.rules[i];
    // Another variant may be inapplicable where this one runs, so only the same variant shadows.
    if (earlier.use == rule.use && complete_config(*family, earlier.config) == complete_config(*family, rule.config) &&
        covers(earlier, rule)) {
      return fmt::format("shadowed by {}", rule_text(earlier));
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> prune_profile(Profile& profile, const FamilySet& families) {
  std::vector<std::string> dropped;
  for (auto& [op, by_key] : profile.tables) {
    const auto it = families.by_op.find(op);
    const std::span<const Family> list = it == families.by_op.end() ? std::span<const Family>{} : it->second;
    for (auto& [key, table] : by_key) {
      for (size_t i = 0; i < table.rules.size();) {
        const std::string why = why_dead(table, i, list);
        // The unconditional last rule ends the table and stays, unless its family is gone.
        const bool keep_last = i + 1 == table.rules.size() && why.starts_with("shadowed");
        if (why.empty() || keep_last) {
          ++i;
          continue;
        }
        dropped.push_back(fmt::format("{} {} {}: {}", op, key, rule_text(table.rules[i]), why));
        table.rules.erase(table.rules.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    std::erase_if(by_key, [](const auto& entry) { return entry.second.rules.empty(); });
  }
  std::erase_if(profile.tables, [](const auto& entry) { return entry.second.empty(); });
  return dropped;
}

Result<Profile> merge_profiles(const Profile& base, const Profile& changes) {
  if (const std::string why = key_difference(base.device, changes.device); !why.empty()) {
    return invalid(fmt::format("{} and {} were made for different devices: {}", base.source, changes.source, why));
  }
  Profile merged = base;
  for (const auto& [op, by_key] : changes.tables) {
    for (const auto& [key, table] : by_key) {
      merged.tables[op][key] = table;
    }
  }
  for (const auto& [type, layout] : changes.layouts) {
    merged.layouts[type] = layout;
  }
  for (const auto& [name, value] : changes.constants) {
    merged.constants[name] = value;
  }
  for (const auto& [name, value] : changes.made_by) {
    merged.made_by[name] = value;
  }
  for (const auto& [name, value] : changes.evidence) {
    merged.evidence[name] = value;
  }
  return merged;
}

Result<Profile> update_profile_file(const std::filesystem::path& path, const Profile& initial, const Profile& changes,
                                    const FamilySet& families) {
  std::error_code error;
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), error);
  }
  CUDABK_ASSIGN(const FileLock lock, FileLock::acquire(path.string() + ".lock"));
  CUDABK_ASSIGN(Profile merged, merge_profiles(initial, changes));
  if (std::filesystem::exists(path, error)) {
    CUDABK_ASSIGN(const std::string text, read_file(path));
    Result<Profile> present = parse_profile(text, path.string(), families, ParseMode::kLenient);
    if (present.ok()) {
      CUDABK_ASSIGN(merged, merge_profiles(*present, changes));
    } else {
      const std::filesystem::path aside = path.string() + ".corrupt";
      std::filesystem::rename(path, aside, error);
      merged.warnings.push_back(fmt::format("{}; set aside as {}", present.error().message, aside.string()));
    }
  }
  CUDABK_TRY(write_file_atomic(path, profile_to_json(merged)));
  merged.source = path.string();
  return merged;
}

std::vector<std::string> diff_profiles(const Profile& a, const Profile& b) {
  std::vector<std::string> lines;
  if (const std::string why = key_difference(a.device, b.device); !why.empty()) {
    lines.push_back("device: " + why);
  }
  std::map<std::string, std::map<std::string, std::pair<const Table*, const Table*>>> tables;
  for (const auto& [op, by_key] : a.tables) {
    for (const auto& [key, table] : by_key) {
      tables[op][key].first = &table;
    }
  }
  for (const auto& [op, by_key] : b.tables) {
    for (const auto& [key, table] : by_key) {
      tables[op][key].second = &table;
    }
  }
  static const Table kNone;
  for (const auto& [op, by_key] : tables) {
    for (const auto& [key, pair] : by_key) {
      const Table& left = pair.first != nullptr ? *pair.first : kNone;
      const Table& right = pair.second != nullptr ? *pair.second : kNone;
      const auto lacks = [](const Table& table, const Rule& rule) {
        return std::none_of(table.rules.begin(), table.rules.end(),
                            [&](const Rule& r) { return rule_text(r) == rule_text(rule); });
      };
      for (const Rule& rule : left.rules) {
        if (lacks(right, rule)) {
          lines.push_back(fmt::format("- {} {} {}", op, key, rule_text(rule)));
        }
      }
      for (const Rule& rule : right.rules) {
        if (lacks(left, rule)) {
          lines.push_back(fmt::format("+ {} {} {}", op, key, rule_text(rule)));
        }
      }
    }
  }
  for (const auto& [type, layout] : b.layouts) {
    if (a.layout_of(type) != layout) {
      lines.push_back(fmt::format("layout {}: {} -> {}", type, a.layout_of(type), layout));
    }
  }
  for (const auto& [type, layout] : a.layouts) {
    if (!b.layouts.contains(type) && layout != "raw") {
      lines.push_back(fmt::format("layout {}: {} -> raw", type, layout));
    }
  }
  std::map<std::string, std::pair<std::string, std::string>> constants;
  for (const auto& [name, value] : a.constants) {
    constants[name].first = std::to_string(value);
  }
  for (const auto& [name, value] : b.constants) {
    constants[name].second = std::to_string(value);
  }
  for (const auto& [name, pair] : constants) {
    if (pair.first != pair.second) {
      lines.push_back(fmt::format("constant {}: {} -> {}", name, pair.first, pair.second));
    }
  }
  return lines;
}

}  // namespace cudabk
