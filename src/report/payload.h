// What the page's scripts read.
#pragma once

#include <string>

#include "report/report.h"

namespace cudabk {

// JSON without the character '<', so that it can stand inside a script element.
std::string report_payload(const ReportInput& input);

}  // namespace cudabk
