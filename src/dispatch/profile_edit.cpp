// Profiles: stale rules, merging, pruning, differences.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

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

// One interval per dimension that the table names; a rule that leaves a dimension out has all of it.
using Box = std::vector<Interval>;

bool covers(const Interval& outer, const Interval& inner) { return outer.low <= inner.low && outer.high >= inner.high; }

// The rules met so far of one variant, and whether one of them covers another. Rules that agree in all dimensions but
// the widest-spread one form a row, whose intervals are searched in order: tables cut that dimension most often, so
// that there are few rows.
class VariantRules {
 public:
  explicit VariantRules(size_t spread_dim) : spread_dim_(spread_dim) {}

  // A rule whose box covers this one; nullptr without one.
  const Rule* covering(const Box& box) const {
    for (const Row& row : rows_) {
      bool all = true;
      for (size_t d = 0; all && d < box.size(); ++d) {
        all = d == spread_dim_ || covers(row.box[d], box[d]);
      }
      if (all) {
        if (const Rule* rule = row.covering(spread(box))) {
          return rule;
        }
      }
    }
    return nullptr;
  }
  void add(Box box, const Rule& rule) {
    const Interval interval = spread(box);
    if (spread_dim_ < box.size()) {
      box[spread_dim_] = {};
    }
    const auto [it, is_new] = row_of_.emplace(key_of(box), rows_.size());
    if (is_new) {
      rows_.push_back({std::move(box), {}});
    }
    rows_[it->second].add(interval, rule);
  }

 private:
  // By low end; none within another, so that high ends ascend too.
  struct Row {
    Box box;
    std::map<int64_t, std::pair<int64_t, const Rule*>> ends;

    const Rule* covering(const Interval& interval) const {
      const auto after = ends.upper_bound(interval.low);
      if (after == ends.begin()) {
        return nullptr;
      }
      const auto& [high, rule] = std::prev(after)->second;
      return high >= interval.high ? rule : nullptr;
    }
    void add(const Interval& interval, const Rule& rule) {
      if (covering(interval) != nullptr) {
        return;
      }
      auto next = ends.lower_bound(interval.low);
      while (next != ends.end() && next->second.first <= interval.high) {
        next = ends.erase(next);
      }
      ends[interval.low] = {interval.high, &rule};
    }
  };

  Interval spread(const Box& box) const { return spread_dim_ < box.size() ? box[spread_dim_] : Interval{}; }
  static std::vector<int64_t> key_of(const Box& box) {
    std::vector<int64_t> key;
    for (const Interval& interval : box) {
      key.insert(key.end(), {interval.low, interval.high});
    }
    return key;
  }

  size_t spread_dim_;
  std::vector<Row> rows_;
  std::map<std::vector<int64_t>, size_t> row_of_;
};

// The dimensions that a table's rules name, and which of them has the most different intervals.
struct TableDims {
  std::vector<std::string> names;
  size_t spread = 0;

  explicit TableDims(const Table& table) {
    std::map<std::string, std::set<std::pair<int64_t, int64_t>>> seen;
    for (const Rule& rule : table.rules) {
      for (const auto& [name, interval] : rule.when) {
        seen[name].insert({interval.low, interval.high});
      }
    }
    size_t most = 0;
    for (const auto& [name, intervals] : seen) {
      if (intervals.size() > most) {
        most = intervals.size();
        spread = names.size();
      }
      names.push_back(name);
    }
  }
  Box box_of(const Rule& rule) const {
    Box box(names.size());
    for (const auto& [name, interval] : rule.when) {
      box[static_cast<size_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin())] = interval;
    }
    return box;
  }
};

// What is dropped of one table, in the order of its rules: index and why.
std::vector<std::pair<size_t, std::string>> dead_rules(const Table& table, std::span<const Family> families) {
  const TableDims dims(table);
  // Another variant may be inapplicable where this one runs, so only the same variant shadows.
  std::map<std::pair<std::string, Config>, VariantRules> met;
  std::vector<std::pair<size_t, std::string>> dead;
  for (size_t i = 0; i < table.rules.size(); ++i) {
    const Rule& rule = table.rules[i];
    const Family* family = find_family(families, rule.use);
    std::string why = family == nullptr ? fmt::format("no family {} in this build", rule.use) : gone(*family, rule);
    if (!why.empty()) {
      dead.emplace_back(i, std::move(why));
      continue;
    }
    VariantRules& same =
        met.try_emplace({rule.use, complete_config(*family, rule.config)}, VariantRules(dims.spread)).first->second;
    Box box = dims.box_of(rule);
    const Rule* over = same.covering(box);
    if (over == nullptr) {
      same.add(std::move(box), rule);
    } else if (i + 1 < table.rules.size()) {  // the unconditional last rule ends the table and stays
      dead.emplace_back(i, fmt::format("shadowed by {}", rule_text(*over)));
    }
  }
  return dead;
}

}  // namespace

std::vector<std::string> prune_profile(Profile& profile, const FamilySet& families) {
  std::vector<std::string> dropped;
  for (auto& [op, by_key] : profile.tables) {
    const auto it = families.by_op.find(op);
    const std::span<const Family> list = it == families.by_op.end() ? std::span<const Family>{} : it->second;
    for (auto& [key, table] : by_key) {
      const std::vector<std::pair<size_t, std::string>> dead = dead_rules(table, list);
      std::vector<Rule> kept;
      size_t next = 0;
      for (size_t i = 0; i < table.rules.size(); ++i) {
        if (next < dead.size() && dead[next].first == i) {
          dropped.push_back(fmt::format("{} {} {}: {}", op, key, rule_text(table.rules[i]), dead[next++].second));
        } else {
          kept.push_back(std::move(table.rules[i]));
        }
      }
      table.rules = std::move(kept);
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
      const std::string &op_name = op, &key_name = key;
      const Table& left = pair.first != nullptr ? *pair.first : kNone;
      const Table& right = pair.second != nullptr ? *pair.second : kNone;
      const auto texts = [](const Table& table) {
        std::vector<std::string> all;
        std::transform(table.rules.begin(), table.rules.end(), std::back_inserter(all), rule_text);
        return all;
      };
      const auto add_missing = [&](char sign, const std::vector<std::string>& from,
                                   const std::vector<std::string>& in) {
        const std::set<std::string_view> present(in.begin(), in.end());
        for (const std::string& rule : from) {
          if (!present.contains(rule)) {
            lines.push_back(fmt::format("{} {} {} {}", sign, op_name, key_name, rule));
          }
        }
      };
      const std::vector<std::string> left_rules = texts(left), right_rules = texts(right);
      add_missing('-', left_rules, right_rules);
      add_missing('+', right_rules, left_rules);
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
