// Named sets of cases.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases.h"

namespace cudabk {

struct SuiteInfo {
  std::string_view name, summary;
};
std::span<const SuiteInfo> suites();

// A suite by name, or "@file.jsonl": one object per line, {"target": "mul_mat", "params": {"type": "q4_K", ...},
// "variant": "auto"}; params left out take the axis defaults. `selection` adds modes and filters (its axes, shapes and
// variant must be unset). kInvalid with the valid names, or with file and line.
Result<std::vector<BenchCase>> suite_cases(const std::string& name, const Selection& selection,
                                           const DeviceInfo& device, const Profile* profile = nullptr);

// "add, mul, mul_mat (mulmat), ..." for messages.
std::string op_names();

}  // namespace cudabk
