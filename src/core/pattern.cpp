#include "core/pattern.h"

#include <fmt/format.h>

#include <cstddef>

namespace cudabk {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxBranch = 4096;  // characters between two bars

bool exhausts_stack(const std::string& text) {
  int depth = 0;
  size_t branch = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    }
    depth += text[i] == '(' ? 1 : (text[i] == ')' ? -1 : 0);
    branch = text[i] == '|' ? 0 : branch + 1;
    if (depth > kMaxDepth || branch > kMaxBranch) {
      return true;
    }
  }
  return false;
}

std::string shortened(const std::string& text) {
  constexpr size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

}  // namespace

Result<std::regex> compile_pattern(const std::string& text) {
  if (exhausts_stack(text)) {
    return invalid(fmt::format("'{}' is too long or too deep for a regular expression", shortened(text)));
  }
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return invalid(fmt::format("'{}' is no regular expression: {}", shortened(text), error.what()));
  }
}

}  // namespace cudabk
