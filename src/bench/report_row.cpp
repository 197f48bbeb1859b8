#include "bench/report_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/units.h"

namespace cudabk {
namespace {

const char* launch_name(LaunchMode mode) { return mode == LaunchMode::kGraph ? "graph" : "eager"; }

std::string chosen_variant(const CaseResult& result) {
  if (result.family.empty()) {
    std::string asked = result.variant == "auto" ? "-" : result.variant;
    std::replace_if(
        asked.begin(), asked.end(), [](char c) { return c == ':' || c == ','; }, ' ');
    return asked;
  }
  std::string text = result.family;
  for (const auto& [name, value] : result.config) {
    text += fmt::format(" {}={}", name, value);
  }
  return text;
}

std::string remarks(const CaseResult& result) {
  std::vector<std::string> parts = result.flags;
  if (result.repack.tensors > 0) {  // at upload, outside the measured time
    parts.push_back("repack " + format_time_ns(result.repack.ns / result.repack.tensors));
  }
  if (result.status != CaseStatus::kOk) {
    std::string text = "** " + std::string(status_name(result.status));
    if (!result.message.empty()) {
      text += ": " + result.message;
    }
    parts.insert(parts.begin(), text);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string figure(const std::optional<double>& value) { return value ? format_figure(*value) : "-"; }

}  // namespace

std::string format_figure(double value, int digits) {
  if (!std::isfinite(value)) {
    return "-";
  }
  const int magnitude = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - magnitude, 0, 6));
}

RowLayout::RowLayout(const std::vector<BenchCase>& cases, bool traced) : traced_(traced) {
  std::vector<Key> keys;
  keys.reserve(cases.size());
  for (const BenchCase& c : cases) {
    keys.push_back({c.target, c.params, c.note, c.variant.text(), launch_name(c.launch), c.fusion ? "on" : "off",
                    c.cold ? "cold" : "hot"});
  }
  decide(keys);
}

RowLayout::RowLayout(const std::vector<CaseResult>& results) {
  std::vector<Key> keys;
  keys.reserve(results.size());
  for (const CaseResult& r : results) {
    keys.push_back({r.target, r.params, r.note, r.variant, r.launch, r.fusion, r.cache});
    traced_ = traced_ || r.kernel_ns.has_value();
  }
  decide(keys);
}

std::string RowLayout::value(const std::string& target, const CaseParams& params, const std::string& axis) const {
  const std::string given = params.get(axis);
  const auto usual = usual_.find({target, axis});
  return given.empty() && usual != usual_.end() ? usual->second : given;
}

// What the cases that have an axis have there, for every axis that one of them gives, in the order of their first
// mention.
std::vector<std::pair<std::string, std::set<std::string>>> RowLayout::axis_values(const std::vector<Key>& keys) {
  std::vector<std::pair<std::string, std::set<std::string>>> axes;
  std::set<std::string> targets;
  for (const Key& key : keys) {
    targets.insert(key.target);
    for (const auto& param : key.params.values) {
      if (std::none_of(axes.begin(), axes.end(), [&](const auto& axis) { return axis.first == param.first; })) {
        axes.push_back({param.first, {}});
      }
    }
  }
  for (auto& [name, values] : axes) {
    for (const std::string& target : targets) {
      usual_[{target, name}] = usual_value(target, name);
    }
    for (const Key& key : keys) {
      values.insert(value(key.target, key.params, name));
    }
    values.erase("");  // an op without this axis
  }
  return axes;
}

void RowLayout::decide(const std::vector<Key>& keys) {
  std::vector<std::string> same;
  std::set<std::string> always{"type", "m", "n", "k", "hidden", "ffn", "tokens", "ne0", "ne1"};
  for (const auto& [name, values] : axis_values(keys)) {
    if (values.size() == 1 && always.count(name) == 0) {
      same.push_back(name + " " + *values.begin());
      continue;
    }
    Column column{name, name != "type"};
    for (const std::string& value : values) {
      column.width = std::max(column.width, display_width(value));
    }
    axes_.push_back(column);
  }
  for (const Key& key : keys) {
    show_note_ = show_note_ || !key.note.empty();
    show_target_ = show_target_ || key.target != keys.front().target;
  }
  const auto mode = [&](std::string Key::*member, bool& show, const std::string& suffix) {
    std::set<std::string> values;
    for (const Key& key : keys) {
      values.insert(key.*member);
    }
    show = values.size() > 1;
    if (values.size() == 1) {
      same.push_back(suffix + " " + *values.begin());
    }
  };
  mode(&Key::launch, show_launch_, "launch");
  mode(&Key::cache, show_cache_, "cache");
  mode(&Key::fusion, show_fusion_, "fusion");
  common_ = fmt::format("{}", fmt::join(same, ", "));
}

std::vector<Column> RowLayout::columns() const {
  std::vector<Column> columns;
  if (show_target_) {
    columns.push_back({"op", false, 8});
  }
  columns.insert(columns.end(), axes_.begin(), axes_.end());
  if (show_note_) {
    columns.push_back({"shape", false, 11});
  }
  if (show_launch_) {
    columns.push_back({"launch", false, 6});
  }
  if (show_fusion_) {
    columns.push_back({"fusion", false, 6});
  }
  if (show_cache_) {
    columns.push_back({"cache", false, 5});
  }
  columns.push_back({"time", true, 9});
  columns.push_back({"noise", true, 6});
  if (traced_) {
    columns.push_back({"kernels", true, 9});
  }
  columns.push_back({"GB/s", true, 8});  // 0.000415: six decimals, of the emulated device
  columns.push_back({"TFLOP/s", true, 8});
  columns.push_back({"% limit", true, 7});
  columns.push_back({"launches", true, 8});
  columns.push_back({"variant", false, 44});
  columns.push_back({"remarks", false, 7});
  return columns;
}

std::vector<std::string> RowLayout::cells(const CaseResult& result, const RunLimits& limits) const {
  std::vector<std::string> cells;
  if (show_target_) {
    cells.push_back(result.target);
  }
  for (const Column& axis : axes_) {
    cells.push_back(value(result.target, result.params, axis.header));
  }
  if (show_note_) {
    cells.push_back(result.note);
  }
  if (show_launch_) {
    cells.push_back(result.launch);
  }
  if (show_fusion_) {
    cells.push_back(result.fusion);
  }
  if (show_cache_) {
    cells.push_back(result.cache);
  }
  const std::optional<double> time = result.time_ns();
  cells.push_back(time ? format_time_ns(*time) : "-");
  const std::optional<double> noise = time ? result.summary->noise_percent : std::nullopt;
  cells.push_back(noise ? fmt::format("{:.1f} %", *noise) : "-");
  if (traced_) {
    cells.push_back(result.kernel_ns ? format_time_ns(*result.kernel_ns) : "-");
  }
  cells.push_back(figure(result.bytes_per_ns()));
  const std::optional<double> operations = result.operations_per_ns();
  cells.push_back(figure(operations ? std::optional(*operations * 1e-3) : std::nullopt));
  const std::optional<double> fraction = limit_fraction(result, limits);
  cells.push_back(fraction ? fmt::format("{:.1f}", *fraction * 100) : "-");
  cells.push_back(result.launches > 0 ? fmt::format("{}", result.launches) : "-");
  cells.push_back(chosen_variant(result));
  cells.push_back(remarks(result));
  return cells;
}

std::string breakdown_text(const CaseResult& result) {
  if (result.breakdown.empty()) {
    return "";
  }
  double total = 0;
  for (const LaunchResult& launch : result.breakdown) {
    total += launch.median_ns.value_or(0);
  }
  TextTable table({{"    launch", false, 26},
                   {"time", true, 9},
                   {"share", true, 6},
                   {"gap", true, 9},
                   {"grid x block", false, 20},
                   {"regs", true, 4},
                   {"kernel", false, 6}});
  std::string text = table.header();
  const auto time_text = [](const std::optional<double>& ns) { return ns ? format_time_ns(*ns) : std::string("-"); };
  for (const LaunchResult& launch : result.breakdown) {
    const std::string share =
        launch.median_ns && total > 0 ? fmt::format("{:.0f} %", 100 * *launch.median_ns / total) : "-";
    text += table.row({"    " + launch.label, time_text(launch.median_ns), share, time_text(launch.gap_ns),
                       fmt::format("{} x {}", fmt::join(launch.grid, ","), fmt::join(launch.block, ",")),
                       launch.registers > 0 ? fmt::format("{}", launch.registers) : "-", launch.kernel});
  }
  if (result.kernel_ns || result.host_enqueue_ns) {
    text += fmt::format("    kernels {}, gaps {}, host enqueue {} per op\n", time_text(result.kernel_ns),
                        time_text(result.gap_ns), time_text(result.host_enqueue_ns));
  }
  return text + "\n";
}

}  // namespace cudabk
