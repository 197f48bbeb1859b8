// What the renderers of a verdict share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/gate.h"

namespace cudabk {

// A case that a reader should look at: regressed, wrong, inconclusive, missing (unless on both sides).
bool needs_attention(const CaseComparison& row);
bool is_failure(const CaseComparison& row);  // regressed or wrong output

// All rows: failures by size, then inconclusive, missing, and the rest by change, the slowest first.
std::vector<const CaseComparison*> worst_first(const Comparison& comparison);

std::string change_text(const std::optional<double>& change);  // "+5.1 %", "-" without one
std::string interval_text(const CaseComparison& row);          // "[+4.8, +5.4]", "" without one
std::string time_text(const std::optional<double>& ns);        // "11.4 µs", "-"
// What the figures do not say: the message, and what the re-measurements gave.
std::string remark_text(const CaseComparison& row);

// Words that all keys share ("launch=graph cache=cold"), and a key without them.
std::vector<std::string> common_words(const Comparison& comparison);
std::string short_key(const std::string& key, const std::vector<std::string>& common);

}  // namespace cudabk
