// Test cases of cpy and cont.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace cudabk {

std::vector<CaseParams> cpy_cases();
std::vector<CaseParams> cont_cases();

}  // namespace cudabk
