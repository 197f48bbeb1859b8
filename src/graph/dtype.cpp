#include "graph/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace cudabk {
namespace {
bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}
}  // namespace

Result<DType> parse_dtype(std::string_view name) {
  std::string names;
  for (const DTypeTraits& row : kDTypes) {
    if (equal_ignoring_case(name, row.name)) {
      return row.type;
    }
    names += names.empty() ? "" : ", ";
    names += row.name;
  }
  return invalid(fmt::format("unknown type '{}'; valid types: {}", name, names));
}

}  // namespace cudabk
