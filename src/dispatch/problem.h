// Problems, choices and tables: which kernel family and configuration runs. Pure data and pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// Can-run, with the reason for a no. Never about speed.
struct Support {
  bool yes = true;
  std::string reason;
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return yes; }
};

// What a choice may depend on. `key` selects the table within the op ("q4_K"); dims are named integers in a fixed
// order per op (m, n, k, batch, ...). Built by one function per op, used by planner, tuner and explain alike.
struct Problem {
  std::string op;
  std::string key;
  std::vector<std::pair<std::string, int64_t>> dims;

  int64_t dim(std::string_view name) const;  // 0 when the op has no such dim
  std::string text() const;                  // "mul_mat q4_K m=4096 n=1 k=14336 ..."
};

using Config = std::map<std::string, int>;      // tunables by name: {"warps": 4, "rows": 2}
std::string config_text(const Config& config);  // "warps=4 rows=2"

struct ConfigParam {
  std::string name;
  std::vector<int> values;  // the search space
  int fallback = 0;         // used where a rule does not name it
};

// One kernel family (or library path) of an op: what can be tuned, and when it can run at all.
struct Family {
  std::string name;  // "mmvq"
  std::vector<ConfigParam> params;
  std::function<Support(const Problem&, const Config&, const DeviceInfo&)> applicable;
};

// nullptr when `families` has none of that name.
const Family* find_family(std::span<const Family> families, std::string_view name);
// nullptr when the family has no such parameter.
const ConfigParam* find_param(const Family& family, std::string_view name);
// `given` with the family's fallback for every parameter it does not name; names the family does not have are dropped.
Config complete_config(const Family& family, const Config& given = {});

struct Interval {
  int64_t low = 0, high = INT64_MAX;  // inclusive
  bool contains(int64_t v) const { return v >= low && v <= high; }
  bool operator==(const Interval&) const = default;
};

struct Rule {
  std::vector<std::pair<std::string, Interval>> when;  // per dimension; empty matches everything
  std::string use;                                     // family name
  Config config;
  std::string code;      // "sha256:..." of the variant measured; empty for hand-written defaults
  bool stale = false;    // code hash differs from the present variant's
  std::string evidence;  // one line: median, baseline, samples; empty for defaults
};

// Ordered rules for one (op, key); the first whose intervals match and whose variant is applicable wins.
struct Table {
  std::vector<Rule> rules;
};

struct Choice {
  std::string family;
  Config config;                                                 // complete: every parameter of the family has a value
  int rule = -1;                                                 // index in the table, -1 for the built-in last resort
  std::vector<std::pair<std::string, std::string>> passed_over;  // rule text -> why
};

// Pure. `families` in order of last resort: when no rule applies the first applicable family is taken with its
// fallback configuration. kUnsupported (with every reason) only when nothing can run.
Result<Choice> choose(const Problem& problem, const DeviceInfo& device, const Table& table,
                      std::span<const Family> families);

}  // namespace cudabk
