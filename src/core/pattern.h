// Regular expressions out of files and command lines.
#pragma once

#include <regex>
#include <string>

#include "core/result.h"

namespace cudabk {

// An ECMAScript expression for regex_search. kInvalid when it is none, or so deep or long that the library, which
// recurses over groups and characters, would run out of stack.
Result<std::regex> compile_pattern(const std::string& text);

}  // namespace cudabk
