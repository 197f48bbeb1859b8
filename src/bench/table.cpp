#include "bench/table.h"

#include <algorithm>

#include "core/text.h"

namespace cudabk {

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) {
    column.width = std::max(column.width, display_width(column.header));
  }
}

void TextTable::widen(size_t column, std::string_view text) {
  columns_[column].width = std::max(columns_[column].width, display_width(printable(text)));
}

std::string TextTable::header() const {
  std::vector<std::string> names;
  std::vector<std::string> rules;
  for (const Column& column : columns_) {
    names.push_back(column.header);
    rules.emplace_back(column.width, '-');
  }
  return line(names) + line(rules);
}

std::string TextTable::row(const std::vector<std::string>& cells) const { return line(cells); }

std::string TextTable::line(const std::vector<std::string>& cells) const {
  std::string text;
  for (size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
    const std::string cell = printable(cells[i]);
    const size_t width = display_width(cell);
    const std::string padding(columns_[i].width > width ? columns_[i].width - width : 0, ' ');
    text += i == 0 ? "" : "  ";
    text += columns_[i].right ? padding + cell : cell + padding;
  }
  while (!text.empty() && text.back() == ' ') {
    text.pop_back();
  }
  return text + "\n";
}

}  // namespace cudabk
