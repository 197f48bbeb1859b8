#include "bench/type_word.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/sweep.h"
#include "graph/dtype.h"

namespace cudabk {

std::string_view no_weight_reason(DType type) {
  switch (type) {
    case DType::q8_1:
    case DType::q8_K:
      return "a format of activations, not of weights";
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return "a type of indices, not of weights";
    case DType::f64:
      return "a type that no product takes";
    default:
      return "a format that no kernel takes yet";
  }
}

Result<std::string> match_type(std::string_view op, std::string_view word, const std::vector<std::string>& allowed) {
  Result<std::string> matched = match_word("type", word, allowed);
  const Result<DType> type = parse_dtype(word);
  if (matched.ok() || !type.ok()) {
    return matched;
  }
  const bool products = std::find(allowed.begin(), allowed.end(), dtype_name(DType::q4_K)) != allowed.end();
  const std::string why =
      products ? std::string(no_weight_reason(*type)) : fmt::format("no type that {} takes here", op);
  return invalid(fmt::format("{} is {}; valid: {}", dtype_name(*type), why, fmt::join(allowed, ", ")));
}

}  // namespace cudabk
