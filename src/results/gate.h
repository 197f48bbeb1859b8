// From a comparison to pass or fail: what must hold, what speaks against it, and the exit status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "results/compare.h"

namespace cudabk {

enum class OnMissing {
  kFail,      // a case on one side only fails
  kAllowNew,  // only one that the candidate lacks does
  kPass,
};

struct GateOptions {
  CompareOptions compare;
  bool fail_inconclusive = true;
  OnMissing on_missing = OnMissing::kFail;
  std::vector<std::string> require_rows;  // each a number of compared cases, or a regex that one of them must match
};

// The exit statuses that a gate can have (docs/gating.md).
inline constexpr int kExitPass = 0, kExitRegressed = 1, kExitUnusable = 2, kExitInconclusive = 3, kExitNothing = 4,
                     kExitWrongOutput = 5, kExitUnfit = 6, kExitInternal = 70, kExitInterrupted = 130;
int exit_status_of(ErrorKind kind);
ErrorKind kind_of_exit(int status);  // the inverse; kInternal for what no error has

// Something that keeps the gate from passing.
struct GateFinding {
  int exit_status = kExitPass;
  std::string code;     // stable, for machines: "regressed", "missing-baseline", a reason or a fault of loading
  std::string message;  // one line
};

struct GateVerdict {
  Comparison comparison;              // empty when a file could not be used
  std::vector<GateFinding> findings;  // the one that decides first; empty: pass
  GateOptions options;
  std::string tool_version;

  int exit_status() const { return findings.empty() ? kExitPass : findings.front().exit_status; }
  // "pass", "regressed", "inconclusive", "nothing to compare", "wrong output", "interrupted", "error"
  std::string_view name() const;
};

// kInvalid when a requirement is no number and no regular expression.
Status check_requirements(const std::vector<std::string>& require_rows);

// Applies the rules. `require_rows` must have been checked.
GateVerdict decide(Comparison comparison, const GateOptions& options);

// The verdict when there is nothing to compare: a file that cannot be used, an interrupted or failed measurement.
GateVerdict refuse(const Error& error, std::string code, const GateOptions& options);

// Adds what kept a measurement from its end to a verdict on what there is.
void add_error(GateVerdict& verdict, const Error& error, std::string code);

// Puts the finding that decides first: 130, 70, 2, 6, 5, 1, 4, 3.
void order_findings(std::vector<GateFinding>& findings);

// "regressed: 1 of 20 cases is slower, worst +5.1 % (mul_mat ...); 18 same, 1 improved"
std::string summary_line(const GateVerdict& verdict);

// ---- the document: schema cudabk-verdict/1 (docs/gating.md) ----
inline constexpr std::string_view kVerdictSchema = "cudabk-verdict/1";
std::string verdict_to_json(const GateVerdict& verdict);  // pretty, ends with a newline
// The inverse, for showing a verdict elsewhere. kInvalid for anything that is no intact verdict of this schema.
Result<GateVerdict> parse_verdict(std::string_view text, std::string_view name);

}  // namespace cudabk
