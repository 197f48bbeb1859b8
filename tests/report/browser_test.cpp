// The page in a real browser: charts drawn, table sorted and filtered, no error, no request.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/sample_report.h"
#include "report/tool.h"

namespace cudabk::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kHook =
    "<script>window.faults = []; addEventListener('error', (e) => faults.push('error: ' + e.message));"
    "addEventListener('unhandledrejection', (e) => faults.push('rejected: ' + e.reason));"
    "addEventListener('securitypolicyviolation', (e) => faults.push('blocked: ' + e.blockedURI + ' ' + "
    "e.violatedDirective));"
    "for (const name of ['error', 'warn']) { console[name] = (...a) => faults.push(name + ': ' + a.join(' ')); "
    "}</script>";

std::string browser() { return find_tool({"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}); }

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string unescaped(std::string text) {
  for (const auto& [from, to] : {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

// What page_check.js found in `html`, opened with these options.
Json look_at(const TempFolder& folder, std::string html, const std::vector<std::string>& options) {
  html.insert(html.find("<head>") + 6, kHook);
  const size_t end = html.rfind("</body>");
  EXPECT_NE(end, std::string::npos);
  html.insert(end, "<script>" + text_of(CUDABK_PAGE_CHECK) + "</script>");
  const std::filesystem::path page = folder.write("page.html", html);
  std::vector<std::string> words = {browser(),
                                    "--headless",
                                    "--no-sandbox",
                                    "--disable-gpu",
                                    "--disable-background-networking",
                                    "--disable-component-update",
                                    "--no-first-run",
                                    "--user-data-dir=" + (folder.path() / "browser").string(),
                                    "--virtual-time-budget=5000",
                                    "--dump-dom"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("file://" + page.string());
  const ToolResult result = run_tool(words);
  const size_t from = result.out.rfind("FOUND{"), to = result.out.rfind("}END");
  if (from == std::string::npos || to == std::string::npos || to < from) {
    ADD_FAILURE() << "the page said nothing, status " << result.status << ": " << result.out.substr(0, 2000);
    return Json::object();
  }
  return Json::parse(unescaped(result.out.substr(from + 5, to + 1 - from - 5)), nullptr, false);
}

class Browser : public testing::Test {
 protected:
  void SetUp() override {
    if (browser().empty()) {
      GTEST_SKIP() << "no browser: none of chromium, chromium-browser, google-chrome is installed, so the page was not "
                      "opened (apt-get install chromium)";
    }
  }
};

TEST_F(Browser, DrawsSortsFiltersAndAsksForNothing) {
  const TempFolder folder;
  const Json found = look_at(folder, report_to_html(report_input()), {"--window-size=1280,900"});
  ASSERT_TRUE(found.contains("faults")) << found;
  EXPECT_EQ(found["faults"], Json::array());
  EXPECT_EQ(found["title"], "cudabk on NVIDIA H200, 2026-01-02");  // no text of the result became markup
  for (const char* id :
       {"overview", "changes", "roofline", "sweep", "map", "launches", "table", "history", "environment"}) {
    const Json& ids = found["sections"];
    EXPECT_TRUE(std::find(ids.begin(), ids.end(), id) != ids.end()) << id;
  }
  EXPECT_GE(found["canvases"], 6);
  EXPECT_EQ(found["blank"], Json::array());
  EXPECT_EQ(found["rows"], report_run().cases.size());
  EXPECT_EQ(found["ascending"], true);
  EXPECT_EQ(found["descending"], true);
  EXPECT_EQ(found["filtered"], 1);
  EXPECT_EQ(found["details"], true);
  EXPECT_GE(found["selects"], 20);
  EXPECT_GE(found["legend"], 4);
  EXPECT_EQ(found["unreachable"], 0);
  EXPECT_EQ(found["unlabelled"], 0);
  EXPECT_EQ(found["holes"], Json::array());
  EXPECT_EQ(found["requests"], Json::array());
  EXPECT_EQ(found["printed"], true);
  EXPECT_EQ(found["background"], "rgb(255, 255, 255)");
}

TEST_F(Browser, FitsAPhoneAndTheDark) {
  const TempFolder folder;
  const Json found = look_at(folder, report_to_html(report_input()),
                             {"--window-size=500,900", "--blink-settings=preferredColorScheme=0"});
  EXPECT_EQ(found["faults"], Json::array());
  EXPECT_LE(found["overflow"], 0);  // nothing but tables and the navigation scrolls sideways
  EXPECT_EQ(found["background"], "rgb(20, 23, 27)");
  EXPECT_EQ(found["blank"], Json::array());
}

TEST_F(Browser, OpensAResultWithHardlyAnything) {
  const TempFolder folder;
  ReportInput input;
  RunResult run = report_run();
  run.cases.erase(run.cases.begin(), run.cases.end() - 1);  // leaves the unsupported case
  run.limits = {};
  run.complete = false;
  input.runs.push_back(file_of(std::move(run), "few.json"));
  const Json found = look_at(folder, report_to_html(input), {});
  EXPECT_EQ(found["faults"], Json::array());
  EXPECT_EQ(found["rows"], 1);
  EXPECT_EQ(found["holes"], Json::array());
  EXPECT_EQ(found["details"], true);
}

}  // namespace
}  // namespace cudabk::test
