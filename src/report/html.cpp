#include <fmt/format.h>

#include <utility>

#include "core/text.h"
#include "report/page_files.h"
#include "report/payload.h"
#include "report/report.h"

namespace cudabk {
namespace {

// `page` with each @NAME@ replaced once by its text; what is put in is not looked at again.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string_view>>& parts) {
  std::string text;
  while (!page.empty()) {
    size_t at = page.size();
    const std::pair<std::string_view, std::string_view>* next = nullptr;
    for (const auto& part : parts) {
      const size_t found = page.find(part.first);
      if (found < at) {
        at = found;
        next = &part;
      }
    }
    text += page.substr(0, at);
    if (next == nullptr) {
      break;
    }
    text += next->second;
    page.remove_prefix(at + next->first.size());
  }
  return text;
}

std::string title_of(const ReportInput& input) {
  if (!input.title.empty()) {
    return input.title;
  }
  const RunEnvironment& e = input.runs.back().run.environment;
  return fmt::format("cudabk on {}, {}", e.device.name, e.started.substr(0, e.started.find('T')));
}

}  // namespace

std::string report_to_html(const ReportInput& input) {
  const std::string title = xml_text(title_of(input)), data = report_payload(input);
  return filled(page_file("page.html"), {{"@TITLE@", title},
                                         {"@STYLE@", page_file("style.css")},
                                         {"@NOTICE@", page_file("notice.txt")},
                                         {"@DATA@", data},
                                         {"@CHART@", page_file("chart.js")},
                                         {"@SCRIPT@", page_file("script.js")}});
}

}  // namespace cudabk
