#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cudabk {

std::string format_time_ns(double ns) {
  if (!std::isfinite(ns)) {
    return "-";
  }
  const double a = std::fabs(ns);
  if (a < 999.5) {
    return fmt::format("{:.0f} ns", ns);
  }
  if (a < 999.5e3) {
    return fmt::format("{:.{}f} µs", ns / 1e3, a < 99.95e3 ? 2 : 1);
  }
  if (a < 999.5e6) {
    return fmt::format("{:.2f} ms", ns / 1e6);
  }
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string format_left_s(double seconds) {
  if (!std::isfinite(seconds)) {
    return "-";
  }
  if (seconds < 99.5) {
    return fmt::format("{:.0f} s", std::max(1.0, seconds));
  }
  return seconds < 99.5 * 60 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (std::fabs(bytes) >= 999.5 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string format_rate(double bytes_per_ns) {
  return std::isfinite(bytes_per_ns) ? fmt::format("{:.1f} GB/s", bytes_per_ns) : "-";
}

std::string format_count(int64_t n) { return fmt::format("{}", n); }

Result<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return invalid(fmt::format("'{}' is not a number", text));
  }
  return value;
}

Result<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec == std::errc::result_out_of_range) {
    return invalid(fmt::format("'{}' does not fit in 64 bits", text));
  }
  if (ec != std::errc() || end != text.data() + text.size()) {
    return invalid(fmt::format("'{}' is not a whole number", text));
  }
  return value;
}

Result<double> parse_duration_s(std::string_view text) {
  size_t split = text.size();
  while (split > 0 && (text[split - 1] < '0' || text[split - 1] > '9') && text[split - 1] != '.') {
    --split;
  }
  const std::string_view unit = text.substr(split);
  double factor = 0;
  if (unit.empty() || unit == "s") {
    factor = 1;
  } else if (unit == "ms") {
    factor = 1e-3;
  } else if (unit == "m" || unit == "min") {
    factor = 60;
  } else if (unit == "h") {
    factor = 3600;
  }
  const auto number = parse_double(text.substr(0, split));
  if (factor == 0 || !number.ok() || *number < 0) {
    return invalid(fmt::format("'{}' is not a duration; write 500ms, 90s, 10m or 1h", text));
  }
  return *number * factor;
}

Result<double> parse_budget_s(std::string_view text) {
  CUDABK_ASSIGN(const double seconds, parse_duration_s(text));
  if (seconds <= 0) {
    return invalid(fmt::format("'{}' leaves no time to measure anything; write 90s, 10m or 1h", text));
  }
  return seconds;
}

}  // namespace cudabk
