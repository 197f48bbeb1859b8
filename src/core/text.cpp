#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>

namespace cudabk {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: not valid UTF-8
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  const size_t bytes = first >= 0xF0 ? 4 : (first >= 0xE0 ? 3 : 2);
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) {
    return {};
  }
  uint32_t value = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return {};
    }
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kLeast[bytes] || surrogate || value > 0x10FFFF ? CodePoint{} : CodePoint{value, bytes};
}

bool turns_direction(uint32_t c) { return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069); }
bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029; }
bool is_non_character(uint32_t c) { return (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF); }

bool is_blank(uint32_t c) { return c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode(text);
    if (c.bytes == 1 && is_blank(c.value)) {
      out += ' ';
    } else if (c.bytes == 0 || is_control(c.value) || turns_direction(c.value) || is_non_character(c.value)) {
      out += kReplacement;
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(std::max<size_t>(c.bytes, 1));
  }
  return out;
}

std::string markdown_text(std::string_view text) {
  const std::string clean = printable(text);
  const auto in_word = [&](size_t i) { return i < clean.size() && std::isalnum(static_cast<unsigned char>(clean[i])); };
  std::string out;
  for (size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    // An underscore inside a word marks nothing: q4_K.
    if (std::string_view("\\`*[|~").find(c) != std::string_view::npos ||
        (c == '_' && !(i > 0 && in_word(i - 1) && in_word(i + 1)))) {
      out += '\\';
    }
    out += c == '<' ? "&lt;" : (c == '&' ? "&amp;" : std::string(1, c));
  }
  return out;
}

// A fence longer than any run of backticks inside; a pipe would still end the cell of a table.
std::string markdown_code(std::string_view text) {
  const std::string clean = printable(text);
  size_t longest = 0, run = 0;
  std::string inside;
  for (const char c : clean) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    inside += c == '|' ? "\\|" : std::string(1, c);
  }
  const std::string fence(longest + 1, '`');
  const std::string space = longest > 0 || clean.empty() ? " " : "";
  return fence + space + inside + space + fence;
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace cudabk
