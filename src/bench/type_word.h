// Types of tensors as words of the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "formats/dtypes.h"

namespace cudabk {

// What a type is that no product takes as its weights: "a format of activations, not of weights", ...
std::string_view no_weight_reason(DType type);

// The entry of `allowed` that equals `word` in any case. kInvalid with all of them otherwise; a type that there is, but
// that `op` does not take here, is told from a word that is none.
Result<std::string> match_type(std::string_view op, std::string_view word, const std::vector<std::string>& allowed);

}  // namespace cudabk
