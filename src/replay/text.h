// Words and tables that the parts of replay share.
#pragma once

#include <string>
#include <vector>

#include "bench/table.h"

namespace cudabk {

std::string percent(double fraction);         // "3.0 %"
std::string signed_percent(double fraction);  // "+3.0 %"

// The whole table, every column as wide as its widest cell.
std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows);

}  // namespace cudabk
