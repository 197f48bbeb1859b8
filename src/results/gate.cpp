#include "results/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <regex>

#include "core/pattern.h"
#include "core/units.h"

namespace cudabk {
namespace {

// If several apply, the first in this order wins (docs/gating.md).
constexpr int kPrecedence[] = {kExitInterrupted, kExitInternal,  kExitUnusable, kExitUnfit,
                               kExitWrongOutput, kExitRegressed, kExitNothing,  kExitInconclusive};

std::string cases_text(size_t count, const char* singular, const char* plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

const CaseComparison* worst_regression(const Comparison& comparison) {
  const CaseComparison* worst = nullptr;
  for (const CaseComparison& row : comparison.cases) {
    if (row.verdict == Verdict::kRegressed && (worst == nullptr || row.change > worst->change)) {
      worst = &row;
    }
  }
  return worst;
}

std::string regression_text(const Comparison& comparison) {
  const size_t count = comparison.count(Verdict::kRegressed);
  const CaseComparison& worst = *worst_regression(comparison);
  const size_t all = comparison.compared();
  return fmt::format("{} of {} {} slower, {}{:+.1f} % ({})", count, cases_text(all, "case", "cases"),
                     count == 1 ? "is" : "are", count == 1 ? "" : "worst ", worst.change.value_or(0) * 100, worst.key);
}

// What one reason means for the gate; kExitPass: nothing.
int status_of_reason(const CaseComparison& row, const GateOptions& options) {
  if (row.verdict == Verdict::kInconclusive) {
    return options.fail_inconclusive ? kExitInconclusive : kExitPass;
  }
  switch (row.reason) {
    case Reason::kWrongOutput:
      return kExitWrongOutput;
    case Reason::kOtherDevice:
    case Reason::kOtherMode:
    case Reason::kOtherTimer:
      return kExitNothing;  // whatever is allowed to be missing: the question was not answered
    case Reason::kNoBaseline:
      return options.on_missing == OnMissing::kFail ? kExitNothing : kExitPass;
    case Reason::kNoCandidate:
    case Reason::kNotMeasured:
      return options.on_missing == OnMissing::kPass ? kExitPass : kExitNothing;
    default:
      return kExitPass;
  }
}

// One finding per reason, with the number of cases and the first of them.
void find_unanswered(const GateVerdict& verdict, std::vector<GateFinding>& findings) {
  struct Group {
    int exit_status = kExitPass;
    size_t count = 0;
    const CaseComparison* first = nullptr;
  };
  std::map<std::string, Group> groups;
  for (const CaseComparison& row : verdict.comparison.cases) {
    if (const int status = status_of_reason(row, verdict.options); status != kExitPass) {
      Group& group = groups[std::string(reason_name(row.reason))];
      group.exit_status = status;
      group.first = group.first == nullptr ? &row : group.first;
      ++group.count;
    }
  }
  for (const auto& [code, group] : groups) {
    findings.push_back(
        {group.exit_status, code,
         fmt::format("{}: {} ({})", cases_text(group.count, "case", "cases"), group.first->message, group.first->key)});
  }
}

void find_requirements(const GateVerdict& verdict, std::vector<GateFinding>& findings) {
  const Comparison& comparison = verdict.comparison;
  for (const std::string& requirement : verdict.options.require_rows) {
    if (const Result<int64_t> number = parse_int(requirement); number.ok()) {
      if (static_cast<int64_t>(comparison.compared()) < *number) {
        findings.push_back({kExitNothing, "require-rows",
                            fmt::format("--require-rows {}: only {} compared", requirement,
                                        cases_text(comparison.compared(), "case was", "cases were"))});
      }
      continue;
    }
    const Result<std::regex> regex = compile_pattern(requirement);
    const bool met = regex.ok() && std::any_of(comparison.cases.begin(), comparison.cases.end(), [&](const auto& row) {
                       return row.verdict != Verdict::kMissing && row.change && std::regex_search(row.key, *regex);
                     });
    if (!met) {
      findings.push_back(
          {kExitNothing, "require-rows", fmt::format("--require-rows '{}': no compared case matches", requirement)});
    }
  }
}

}  // namespace

int exit_status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
    case ErrorKind::kUnsupported:
      return kExitUnusable;
    case ErrorKind::kInconclusive:
      return kExitInconclusive;
    case ErrorKind::kNothing:
      return kExitNothing;
    case ErrorKind::kWrongOutput:
      return kExitWrongOutput;
    case ErrorKind::kUnfit:
      return kExitUnfit;
    case ErrorKind::kInternal:
      return kExitInternal;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
  }
  return kExitInternal;
}

ErrorKind kind_of_exit(int status) {
  for (const ErrorKind kind : {ErrorKind::kInvalid, ErrorKind::kInconclusive, ErrorKind::kNothing,
                               ErrorKind::kWrongOutput, ErrorKind::kUnfit, ErrorKind::kInterrupted}) {
    if (exit_status_of(kind) == status) {
      return kind;
    }
  }
  return ErrorKind::kInternal;
}

std::string_view GateVerdict::name() const {
  switch (exit_status()) {
    case kExitPass:
      return "pass";
    case kExitRegressed:
      return "regressed";
    case kExitInconclusive:
      return "inconclusive";
    case kExitNothing:
      return "nothing to compare";
    case kExitWrongOutput:
      return "wrong output";
    case kExitInterrupted:
      return "interrupted";
    default:
      return "error";
  }
}

Status check_requirements(const std::vector<std::string>& require_rows) {
  for (const std::string& requirement : require_rows) {
    const Result<int64_t> number = parse_int(requirement);
    if (number.ok() && *number < 1) {
      return invalid(fmt::format("--require-rows: {} rows are no requirement", *number));
    }
    if (requirement.empty()) {
      return invalid("--require-rows: expected a number of rows or a regular expression");
    }
    if (Result<std::regex> regex = compile_pattern(requirement); !number.ok() && !regex.ok()) {
      return std::move(regex).error().with_context("--require-rows");
    }
  }
  return success();
}

void order_findings(std::vector<GateFinding>& findings) {
  const auto rank = [](const GateFinding& finding) {
    return std::find(std::begin(kPrecedence), std::end(kPrecedence), finding.exit_status) - std::begin(kPrecedence);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const GateFinding& a, const GateFinding& b) { return rank(a) < rank(b); });
}

GateVerdict decide(Comparison comparison, const GateOptions& options) {
  GateVerdict verdict{std::move(comparison), {}, options, CUDABK_VERSION};
  std::vector<GateFinding> findings;
  if (verdict.comparison.count(Verdict::kRegressed) > 0) {
    findings.push_back({kExitRegressed, "regressed", regression_text(verdict.comparison)});
  }
  find_unanswered(verdict, findings);
  if (verdict.comparison.compared() == 0) {
    findings.push_back({kExitNothing, "nothing-compared", "no case could be compared"});
  }
  find_requirements(verdict, findings);
  order_findings(findings);
  verdict.findings = std::move(findings);
  return verdict;
}

GateVerdict refuse(const Error& error, std::string code, const GateOptions& options) {
  return {{}, {{exit_status_of(error.kind), std::move(code), error.message}}, options, CUDABK_VERSION};
}

void add_error(GateVerdict& verdict, const Error& error, std::string code) {
  verdict.findings.push_back({exit_status_of(error.kind), std::move(code), error.message});
  order_findings(verdict.findings);
}

std::string summary_line(const GateVerdict& verdict) {
  const Comparison& comparison = verdict.comparison;
  std::string counts;
  for (const Verdict v : {Verdict::kRegressed, Verdict::kImproved, Verdict::kSame, Verdict::kUnchangedCode,
                          Verdict::kInconclusive, Verdict::kMissing}) {
    if (const size_t count = comparison.count(v); count > 0) {
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, verdict_name(v));
    }
  }
  if (verdict.findings.empty()) {
    return fmt::format("pass: {}", counts);
  }
  return fmt::format("{}: {}{}{}", verdict.name(), verdict.findings.front().message, counts.empty() ? "" : "; ",
                     counts);
}

}  // namespace cudabk
