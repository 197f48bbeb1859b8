// Texts from files and command lines on their way to terminals, Markdown and XML: names of cases, devices and files
// may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace cudabk {

// One line of valid UTF-8 that a terminal shows as it is: line breaks and tabs become blanks; bytes that are no UTF-8,
// other control characters and those that turn the direction of writing become U+FFFD.
std::string printable(std::string_view text);

// `printable` text that Markdown shows as it is, also in a table: no markup, no HTML, no named link.
std::string markdown_text(std::string_view text);

// The same in code style.
std::string markdown_code(std::string_view text);

// For XML text and attributes: escaped, without the characters that XML forbids.
std::string xml_text(std::string_view text);

}  // namespace cudabk
