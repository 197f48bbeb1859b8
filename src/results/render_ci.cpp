// Markdown, GitHub annotations and JUnit XML of a verdict.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/text.h"
#include "results/render.h"
#include "results/render_rows.h"

namespace cudabk {
namespace {

constexpr size_t kMaxAnnotations = 10;    // of each level: GitHub shows no more per step
constexpr size_t kMaxMarkdownRows = 200;  // a comment holds 65536 characters

std::string markdown_rows(const std::vector<const CaseComparison*>& rows) {
  std::string text =
      "| verdict | change | interval | baseline | candidate | case | remarks |\n"
      "|---|--:|---|--:|--:|---|---|\n";
  for (size_t i = 0; i < std::min(rows.size(), kMaxMarkdownRows); ++i) {
    const CaseComparison& row = *rows[i];
    const std::string name(verdict_name(row.verdict));
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", is_failure(row) ? "**" + name + "**" : name,
                        change_text(row.change), interval_text(row), time_text(row.baseline_ns),
                        time_text(row.candidate_ns), markdown_code(row.key), markdown_text(remark_text(row)));
  }
  if (rows.size() > kMaxMarkdownRows) {
    text += fmt::format("\n{} more in the verdict file.\n", rows.size() - kMaxMarkdownRows);
  }
  return text;
}

// Line breaks stay line breaks in GitHub's display; everything else that is no text is replaced.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    for (const char c : printable(text.substr(0, end))) {
      const bool special = c == '%' || (property && (c == ':' || c == ','));
      out += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
    }
    if (end < text.size()) {
      out += text[end] == '\n' ? "%0A" : "%0D";
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string annotation(const char* level, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", level, escaped(title, true), escaped(message, false));
}

std::string case_message(const CaseComparison& row) {
  std::string text = row.key;
  if (row.change) {
    text += fmt::format(": {} {}, {} -> {}", change_text(row.change), interval_text(row), time_text(row.baseline_ns),
                        time_text(row.candidate_ns));
  }
  const std::string remark = remark_text(row);
  return remark.empty() ? text : text + "; " + remark;
}

// Whether this case alone would keep the gate from passing.
bool fails_gate(const CaseComparison& row, const GateVerdict& verdict) {
  return std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const GateFinding& finding) {
    return finding.code == (row.verdict == Verdict::kRegressed ? "regressed" : reason_name(row.reason));
  });
}

struct JunitCounts {
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

std::string junit_case(const CaseComparison& row, const GateVerdict& verdict, JunitCounts& counts) {
  ++counts.tests;
  std::string text = fmt::format("  <testcase classname=\"cudabk.gate.{}\" name=\"{}\" time=\"{:.9f}\"",
                                 xml_text(row.target), xml_text(row.key), row.candidate_ns.value_or(0) * 1e-9);
  const char* element = nullptr;
  if (is_failure(row)) {
    element = "failure";
    ++counts.failures;
  } else if (needs_attention(row) && fails_gate(row, verdict)) {
    element = "error";
    ++counts.errors;
  } else if (needs_attention(row) || row.verdict == Verdict::kMissing) {
    element = "skipped";
    ++counts.skipped;
  }
  if (element == nullptr) {
    return text + "/>\n";
  }
  return text + fmt::format(">\n    <{} message=\"{}: {}\"/>\n  </testcase>\n", element, verdict_name(row.verdict),
                            xml_text(case_message(row)));
}

}  // namespace

std::string verdict_markdown(const GateVerdict& verdict) {
  std::vector<const CaseComparison*> attention, rest;
  for (const CaseComparison* row : worst_first(verdict.comparison)) {
    (needs_attention(*row) || row->verdict == Verdict::kImproved ? attention : rest).push_back(row);
  }
  std::string text = fmt::format("### {} cudabk gate\n\n{}\n\n", verdict.findings.empty() ? "✅" : "❌",
                                 markdown_text(summary_line(verdict)));
  for (size_t i = 1; i < verdict.findings.size(); ++i) {
    text += fmt::format("- {}\n", markdown_text(verdict.findings[i].message));
  }
  for (const std::string& note : verdict.comparison.notes) {
    text += fmt::format("- note: {}\n", markdown_text(note));
  }
  text += text.back() == '\n' && text[text.size() - 2] == '\n' ? "" : "\n";
  if (!attention.empty()) {
    text += markdown_rows(attention) + "\n";
  }
  if (!rest.empty()) {
    text += fmt::format("<details><summary>{} cases that need no attention</summary>\n\n{}\n</details>\n\n",
                        rest.size(), markdown_rows(rest));
  }
  const GateOptions& options = verdict.options;
  text += fmt::format("Limit {:.3g} %{}, confidence {:.4g} %, at least {} samples a side.\n",
                      options.compare.thresholds.fallback() * 100,
                      options.compare.thresholds.rule_texts().empty() ? "" : " (others by case)",
                      options.compare.confidence * 100, options.compare.min_samples);
  return text;
}

std::string verdict_annotations(const GateVerdict& verdict) {
  std::string text;
  size_t errors = 0, warnings = 0;
  for (const CaseComparison* row : worst_first(verdict.comparison)) {
    if (!needs_attention(*row)) {
      continue;
    }
    const bool error = is_failure(*row);
    if ((error ? errors : warnings)++ < kMaxAnnotations) {
      text += annotation(error ? "error" : "warning", fmt::format("cudabk: {}", verdict_name(row->verdict)),
                         case_message(*row));
    }
  }
  // What concerns no single case: an unusable file, required rows.
  if (verdict.comparison.cases.empty()) {
    for (const GateFinding& finding : verdict.findings) {
      text += annotation("error", "cudabk: " + finding.code, finding.message);
    }
  }
  return text + annotation("notice", "cudabk gate", summary_line(verdict));
}

std::string verdict_junit(const GateVerdict& verdict) {
  JunitCounts counts;
  std::string body;
  for (const CaseComparison& row : verdict.comparison.cases) {
    body += junit_case(row, verdict, counts);
  }
  for (const GateFinding& finding : verdict.findings) {
    const bool of_case = finding.code == "regressed" ||
                         std::any_of(verdict.comparison.cases.begin(), verdict.comparison.cases.end(),
                                     [&](const auto& row) { return reason_name(row.reason) == finding.code; });
    if (!of_case) {
      ++counts.tests;
      ++counts.errors;
      body += fmt::format(
          "  <testcase classname=\"cudabk.gate\" name=\"{}\">\n    <error message=\"{}\"/>\n  </testcase>\n",
          xml_text(finding.code), xml_text(finding.message));
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"cudabk gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      counts.tests, counts.failures, counts.errors, counts.skipped, body);
}

}  // namespace cudabk
