// Rules that were measured with other kernels than this build has.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "dispatch/profile.h"

namespace cudabk {

// The rules of `profile` that decide in one of the cases and whose recorded code hash is not that of the present
// variant, as "mul_mat q4_K n 1..8: mmvq rows=2 warps=4", each once. Compiles the variants of these rules where that
// has not been done yet. Cases with a forced variant have no rule.
std::vector<std::string> stale_rules(Device& device, const Profile& profile, std::span<const BenchCase> cases);

}  // namespace cudabk
