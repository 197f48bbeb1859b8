#include "replay/text.h"

#include <fmt/format.h>

namespace cudabk {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }
std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  TextTable table(columns);
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      table.widen(i, row[i]);
    }
  }
  std::string text = table.header();
  for (const std::vector<std::string>& row : rows) {
    text += table.row(row);
  }
  return text;
}

}  // namespace cudabk
