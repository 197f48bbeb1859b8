// Texts out of files must not reach a terminal, a comment or a test report as anything but text.
#include "core/text.h"

#include <gtest/gtest.h>

#include "results/render.h"
#include "results/sample_results.h"

namespace cudabk {
namespace {

TEST(Text, PrintableKeepsWordsAndNothingElse) {
  EXPECT_EQ(printable("q4_K µs → 漢字 😀"), "q4_K µs → 漢字 😀");
  EXPECT_EQ(printable("a\nb\r\tc"), "a b  c");
  EXPECT_EQ(printable("\x1b[2J\x07"), "\xEF\xBF\xBD[2J\xEF\xBF\xBD");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\xEF\xBF\xBD");
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82"}) {
    const std::string shown = printable(bad);
    EXPECT_EQ(shown.find_first_not_of("\xEF\xBF\xBD"), std::string::npos) << shown;
    EXPECT_FALSE(shown.empty());
  }
  EXPECT_EQ(printable("\xc2\x9b"), "\xEF\xBF\xBD") << "C1: an escape sequence to some terminals";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\xEF\xBF\xBD") << "turns the direction of what follows";
}

TEST(Text, MarkdownShowsWhatIsThere) {
  EXPECT_EQ(markdown_text("mul_mat q4_K n=1"), "mul_mat q4_K n=1");
  EXPECT_EQ(markdown_text("_a_ *b* `c` [d](e) |"), "\\_a\\_ \\*b\\* \\`c\\` \\[d](e) \\|");
  EXPECT_EQ(markdown_text("<img src=x>&lt;\n# h"), "&lt;img src=x>&amp;lt; # h");
  EXPECT_EQ(markdown_code("a|b"), "`a\\|b`");
  EXPECT_EQ(markdown_code("`</td>``"), "``` `</td>`` ```");
}

TEST(Text, XmlHasNoForbiddenCharacters) {
  EXPECT_EQ(xml_text("a<b>&\"\x01\xff"), "a&lt;b&gt;&amp;&quot;\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(xml_text("\xEF\xBF\xBF"), "\xEF\xBF\xBD") << "U+FFFF";
}

// A case whose name would be a command to a terminal, to GitHub and to a browser.
TEST(Text, AHostileNameStaysAName) {
  const std::string name = "type=`\x1b]0;x\x07|<script>alert(1)</script>\n::error::gotcha";
  std::vector<CaseResult> before, after;
  for (int side = 0; side < 2; ++side) {
    CaseResult row = test::sample_case("type=x m=1", test::noisy_samples(side == 0 ? 1000 : 1200, 40, 7));
    row.key = name;
    row.breakdown[0].code_hash = side == 0 ? "a" : "b";
    (side == 0 ? before : after).push_back(row);
  }
  ResultSet a, b;
  a.files.push_back({"a\x1b.json", test::sample_run(before), ""});
  b.files.push_back({"b.json", test::sample_run(after), ""});
  Comparison comparison = compare_results(a, b, {});
  comparison.notes.push_back("a note\n::warning::from nowhere");
  comparison.baseline.path = "a\x1b.json";
  const GateVerdict verdict = decide(std::move(comparison), {});
  ASSERT_EQ(verdict.exit_status(), kExitRegressed);
  for (const std::string& text :
       {verdict_table(verdict, {}), verdict_annotations(verdict), verdict_markdown(verdict), verdict_junit(verdict)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("\n::error::gotcha"), std::string::npos) << text;
    EXPECT_EQ(text.find("\n::warning::from"), std::string::npos) << text;
  }
  EXPECT_EQ(verdict_junit(verdict).find("<script"), std::string::npos);
  EXPECT_NE(verdict_markdown(verdict).find("| `` type=`"), std::string::npos) << verdict_markdown(verdict);
}

}  // namespace
}  // namespace cudabk
