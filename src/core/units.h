// Numbers with units for people. Machine formats never use these: they carry base units (ns, bytes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace cudabk {

std::string format_time_ns(double ns);         // "812 ns", "11.4 µs", "3.20 ms", "1.50 s"
std::string format_left_s(double seconds);     // of progress lines: "3 s", "4 min", "2.5 h"
std::string format_bytes(double bytes);        // "33.0 MB" (powers of 1000)
std::string format_rate(double bytes_per_ns);  // GB/s: bytes per ns
std::string format_count(int64_t n);           // "14336"

// "10m", "90s", "1.5h", "500ms" -> seconds. Locale-independent.
Result<double> parse_duration_s(std::string_view text);
// The same for a time limit, of which 0 would leave nothing to be done: kInvalid.
Result<double> parse_budget_s(std::string_view text);
// Decimal number, locale-independent, whole text must match.
Result<double> parse_double(std::string_view text);
Result<int64_t> parse_int(std::string_view text);

}  // namespace cudabk
