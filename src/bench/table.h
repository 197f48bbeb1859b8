// Aligned text tables whose rows can be printed as they come.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cudabk {

struct Column {
  std::string header;
  bool right = true;  // numbers to the right, words to the left
  size_t width = 0;   // at least; the header's width counts too
};

// Columns on a terminal: UTF-8 code points (the few symbols used here are one column wide).
size_t display_width(std::string_view text);

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);
  // Lines end with a newline; no trailing blanks. A cell wider than its column pushes the rest of its row.
  // Cells are shown as `printable` text (core/text.h).
  std::string header() const;  // names and a rule below
  std::string row(const std::vector<std::string>& cells) const;

  // Makes the column at least as wide as `text`.
  void widen(size_t column, std::string_view text);

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
};

}  // namespace cudabk
