// The columns of a result for people: one layout for terminal and Markdown.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/cases.h"
#include "bench/result.h"
#include "bench/table.h"

namespace cudabk {

class RowLayout {
 public:
  // Columns for these cases (one for the op only where there are several): an axis or mode that is the same everywhere
  // stays out of the table (see `common()`), except the type and the sizes; where some cases give an axis, the others
  // show its usual value. `traced`: with a column for the kernels'
  // own time.
  RowLayout(const std::vector<BenchCase>& cases, bool traced);
  explicit RowLayout(const std::vector<CaseResult>& results);

  std::vector<Column> columns() const;
  std::vector<std::string> cells(const CaseResult& result, const RunLimits& limits) const;
  const std::string& common() const { return common_; }  // "launch graph, cache cold, fusion on"

 private:
  struct Key {
    std::string target;
    CaseParams params;
    std::string note, variant, launch, fusion, cache;
  };
  void decide(const std::vector<Key>& keys);
  std::vector<std::pair<std::string, std::set<std::string>>> axis_values(const std::vector<Key>& keys);
  std::string value(const std::string& target, const CaseParams& params, const std::string& axis) const;

  std::vector<Column> axes_;
  std::map<std::pair<std::string, std::string>, std::string> usual_;  // by target and axis
  bool traced_ = false, show_target_ = false, show_note_ = false, show_launch_ = false, show_fusion_ = false,
       show_cache_ = false;
  std::string common_;
};

// The launches of one op: kernel, shape, traced time, share, gap before it. Without a trace: what runs, no times. Empty
// when the case has none.
std::string breakdown_text(const CaseResult& result);

std::string format_figure(double value, int digits = 3);  // "1.23", "12.3", "1234": at least `digits` significant ones

}  // namespace cudabk
