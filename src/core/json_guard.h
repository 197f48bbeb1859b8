// A guard in front of JSON parsers: documents come from disk and may be damaged or hostile.
#pragma once

#include <string_view>

namespace cudabk {

// No document of this project nests deeper than ten; what walks a parsed document recursively relies on this bound.
inline constexpr int kMaxJsonDepth = 64;

// Whether objects and lists are open at once more than `limit` times anywhere in `text`. Needs no valid JSON.
bool nests_deeper_than(std::string_view text, int limit);

// Whether there is a zero byte, which parsers take for the end of the text: what follows would go unseen.
inline bool has_zero_byte(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace cudabk
