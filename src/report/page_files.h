// The files of src/report/page and the chart library as text (generated at build).
#pragma once

#include <string_view>

namespace cudabk {

// "page.html", "style.css", "script.js", "chart.js", "notice.txt"; empty for any other name.
std::string_view page_file(std::string_view name);

}  // namespace cudabk
