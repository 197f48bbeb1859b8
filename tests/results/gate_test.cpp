#include "results/gate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json_schema.h"
#include "results/confirm.h"
#include "results/measure_again.h"
#include "results/render.h"
#include "results/sample_results.h"

namespace cudabk {
namespace {

using test::noisy_samples;
using test::sample_case;
using test::sample_run;

ResultSet set_of(std::vector<CaseResult> cases) {
  ResultSet set;
  set.files.push_back({"x.json", sample_run(std::move(cases)), "sha256:" + std::string(64, '0')});
  return set;
}

// m=I of a suite; the code differs between the sides, so that every verdict is possible.
CaseResult one(int index, double ns, const char* code, size_t samples = 40) {
  CaseResult c =
      sample_case("type=q4_K m=" + std::to_string(index),
                  noisy_samples(ns, samples, static_cast<uint64_t>(index) * 7 + (code[0] == 'b' ? 1000 : 1)));
  c.breakdown[0].code_hash = code;
  return c;
}

// Eight cases; `change` alters the candidate's.
GateVerdict gate(void (*change)(std::vector<CaseResult>&), const GateOptions& options = {}) {
  std::vector<CaseResult> a, b;
  for (int i = 0; i < 8; ++i) {
    a.push_back(one(i, 1000 + i, "a"));
    b.push_back(one(i, 1000 + i, "b"));
  }
  change(b);
  return decide(compare_results(set_of(std::move(a)), set_of(std::move(b)), options.compare), options);
}

struct Situation {
  const char* name;
  int exit_status;
  const char* code;  // of the deciding finding
  void (*change)(std::vector<CaseResult>&);
};

const Situation kSituations[] = {
    {"nothing changed", kExitPass, "", [](auto&) {}},
    {"improved", kExitPass, "", [](auto& b) { b[2] = one(2, 900, "b"); }},
    {"regressed", kExitRegressed, "regressed", [](auto& b) { b[2] = one(2, 1100, "b"); }},
    {"regressed with the same code", kExitPass, "", [](auto& b) { b[2] = one(2, 1100, "a"); }},
    {"few samples", kExitInconclusive, "few-samples", [](auto& b) { b[2] = one(2, 1100, "b", 12); }},
    {"case missing", kExitNothing, "no-candidate", [](auto& b) { b.pop_back(); }},
    {"case added", kExitNothing, "no-baseline", [](auto& b) { b.push_back(one(9, 1000, "b")); }},
    {"out of memory", kExitNothing, "not-measured",
     [](auto& b) {
       b[2].status = CaseStatus::kOutOfMemory;
       b[2].samples_ns.clear();
     }},
    {"wrong output", kExitWrongOutput, "wrong-output", [](auto& b) { b[2].status = CaseStatus::kWrong; }},
    {"throttled row", kExitInconclusive, "throttled", [](auto& b) { b[2].status = CaseStatus::kThrottled; }},
    {"eager fallback", kExitNothing, "other-mode", [](auto& b) { b[2].fallback = "capture failed"; }},
    {"cold not proven", kExitNothing, "other-mode", [](auto& b) { b[2].cold_proven = false; }},
    {"other launch mode", kExitNothing, "other-mode",
     [](auto& b) {
       b[2].launch = "eager";
       b[2].key.replace(b[2].key.find("launch=graph"), 12, "launch=eager");
     }},
    {"other timer", kExitNothing, "other-timer", [](auto& b) { b[2].timer = "wall"; }},
    {"regressed and wrong", kExitWrongOutput, "wrong-output",
     [](auto& b) {
       b[2] = one(2, 1100, "b");
       b[3].status = CaseStatus::kWrong;
     }},
    {"regressed and missing", kExitRegressed, "regressed",
     [](auto& b) {
       b[2] = one(2, 1100, "b");
       b.pop_back();
     }},
    {"missing and inconclusive", kExitNothing, "no-candidate",
     [](auto& b) {
       b[2] = one(2, 1100, "b", 12);
       b.pop_back();
     }},
};

TEST(Gate, EverySituationHasItsExitStatusAndCode) {
  for (const Situation& s : kSituations) {
    const GateVerdict verdict = gate(s.change);
    EXPECT_EQ(verdict.exit_status(), s.exit_status) << s.name << ": " << summary_line(verdict);
    EXPECT_EQ(verdict.findings.empty() ? "" : verdict.findings.front().code, s.code) << s.name;
    EXPECT_EQ(summary_line(verdict).find('\n'), std::string::npos);
  }
}

TEST(Gate, OptionsDecideWhatFails) {
  GateOptions lenient;
  lenient.fail_inconclusive = false;
  EXPECT_EQ(gate([](auto& b) { b[2] = one(2, 1100, "b", 12); }, lenient).exit_status(), kExitPass);
  GateOptions options;
  options.on_missing = OnMissing::kAllowNew;
  EXPECT_EQ(gate([](auto& b) { b.push_back(one(9, 1000, "b")); }, options).exit_status(), kExitPass);
  EXPECT_EQ(gate([](auto& b) { b.pop_back(); }, options).exit_status(), kExitNothing);
  options.on_missing = OnMissing::kPass;
  EXPECT_EQ(gate([](auto& b) { b.pop_back(); }, options).exit_status(), kExitPass);
  EXPECT_EQ(gate(
                [](auto& b) {
                  b.clear();
                  b.push_back(one(50, 1, "b"));
                },
                options)
                .exit_status(),
            kExitNothing)
      << "nothing at all was compared";
  GateOptions forced;
  forced.compare.force = true;
  EXPECT_EQ(gate([](auto& b) { b[2].timer = "wall"; }, forced).exit_status(), kExitPass);
}

TEST(Gate, RequiredRowsMustHaveBeenCompared) {
  const auto status = [](std::vector<std::string> rows) {
    GateOptions options;
    options.require_rows = std::move(rows);
    EXPECT_TRUE(check_requirements(options.require_rows).ok());
    return gate([](auto&) {}, options).exit_status();
  };
  EXPECT_EQ(status({"8", "type=q4_K m=7"}), kExitPass);
  EXPECT_EQ(status({"9"}), kExitNothing);
  EXPECT_EQ(status({"type=q6_K"}), kExitNothing);
  EXPECT_FALSE(check_requirements({"m=(1"}).ok());
}

TEST(Gate, OtherDevicesCompareOnlyWhenForced) {
  ResultSet a = set_of({one(1, 1000, "a")}), b = set_of({one(1, 1000, "b")});
  b.files[0].run.environment.device.name = "NVIDIA H100";
  GateOptions options;
  GateVerdict verdict = decide(compare_results(a, b, options.compare), options);
  EXPECT_EQ(verdict.exit_status(), kExitNothing);
  EXPECT_EQ(verdict.findings.front().code, "other-device");
  EXPECT_NE(verdict.findings.front().message.find("NVIDIA H100"), std::string::npos);
  options.compare.force = true;
  EXPECT_EQ(decide(compare_results(a, b, options.compare), options).exit_status(), kExitPass);
  // Another slice of the same GPU is another device, another GPU of the same kind is not.
  b = set_of({one(1, 1000, "b")});
  b.files[0].run.environment.device.uuid = "GPU-2";
  EXPECT_EQ(decide(compare_results(a, b, {}), {}).exit_status(), kExitPass);
  b.files[0].run.environment.device.sm_count = 16;
  EXPECT_EQ(decide(compare_results(a, b, {}), {}).exit_status(), kExitNothing);
}

TEST(Gate, PrecedenceIsThatOfTheDocumentation) {
  std::vector<GateFinding> findings;
  for (const int status : {3, 4, 1, 5, 6, 2, 70, 130}) {
    findings.push_back({status, "x", "y"});
  }
  order_findings(findings);
  std::vector<int> order;
  for (const GateFinding& finding : findings) {
    order.push_back(finding.exit_status);
  }
  EXPECT_EQ(order, (std::vector<int>{130, 70, 2, 6, 5, 1, 4, 3}));
}

// ---- confirmation ----

Comparison one_case(double candidate_ns) {
  return compare_results(set_of({one(1, 1000, "a")}), set_of({one(1, candidate_ns, "b")}), {});
}

// Re-measurements that give these times, in turn.
CaseComparison confirmed(double first_ns, std::vector<double> again_ns, int rounds = 2) {
  Comparison comparison = one_case(first_ns);
  size_t calls = 0;
  const Status status = confirm(comparison, {}, rounds, [&](const auto& cases, int) {
    EXPECT_EQ(cases.size(), 1U);
    return Result(std::pair{set_of({one(1, 1000, "a")}), set_of({one(1, again_ns.at(calls++), "b")})});
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(comparison.cases[0].confirmations.size(), calls);
  return comparison.cases.at(0);
}

TEST(Confirm, ARegressionThatStaysIsConfirmed) {
  const CaseComparison row = confirmed(1100, {1100, 1100});
  EXPECT_EQ(row.verdict, Verdict::kRegressed);
  EXPECT_EQ(row.message, "confirmed");
}

TEST(Confirm, ARegressionThatGoesAwayIsNone) {
  const CaseComparison row = confirmed(1100, {1000, 1000});
  EXPECT_EQ(row.verdict, Verdict::kSame);
  EXPECT_NE(row.message.find("not confirmed: +"), std::string::npos) << row.message;
  EXPECT_EQ(confirmed(1100, {1000}, 1).verdict, Verdict::kSame);
  EXPECT_EQ(confirmed(1100, {1000, 1100}).verdict, Verdict::kRegressed) << "two of three";
}

TEST(Confirm, CalmCasesAreNotMeasuredAgain) {
  Comparison comparison = one_case(1000);
  const Status status = confirm(comparison, {}, 2, [](const auto&, int) -> Result<std::pair<ResultSet, ResultSet>> {
    ADD_FAILURE();
    return internal_error("called");
  });
  EXPECT_TRUE(status.ok());
}

TEST(Confirm, WhereMeasuringIsNotPossibleTheVerdictStandsAndANoteSaysSo) {
  Comparison comparison = one_case(1100);
  const auto unfit_machine = [](const auto&, int) -> Result<std::pair<ResultSet, ResultSet>> {
    return unfit("no GPU");
  };
  EXPECT_TRUE(confirm(comparison, {}, 2, unfit_machine).ok());
  EXPECT_EQ(comparison.cases[0].verdict, Verdict::kRegressed);
  ASSERT_FALSE(comparison.notes.empty());
  EXPECT_EQ(comparison.notes.back(), "could not measure again: no GPU");
  const auto interrupted = [](const auto&, int) -> Result<std::pair<ResultSet, ResultSet>> {
    return Error{ErrorKind::kInterrupted, "stop"};
  };
  EXPECT_EQ(confirm(comparison, {}, 2, interrupted).error().kind, ErrorKind::kInterrupted);
}

TEST(MeasureAgain, KeepsWhatToMeasureAndDropsWhereItGoes) {
  EXPECT_EQ(repeatable_arguments({"bench", "mulmat", "--type", "q4_K", "--json", "a.json", "-q", "--csv=-", "--device",
                                  "host", "-n", "1"}),
            (std::vector<std::string>{"mulmat", "--type", "q4_K", "-n", "1"}));
  const Comparison comparison = one_case(1100);
  const auto arguments = narrowed({"mulmat"}, {comparison.cases.data()});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->at(2), "^(mul_mat type=q4_K m=1 variant=auto launch=graph fusion=on cache=cold)$");
  EXPECT_FALSE(narrowed({}, std::vector<const CaseComparison*>(1000, comparison.cases.data())).ok());
}

// ---- documents ----

GateVerdict mixed_verdict() {
  GateOptions options;
  EXPECT_TRUE(options.compare.thresholds.add_rules("m=6 50%", "rules").ok());
  options.require_rows = {"100"};
  GateVerdict verdict = gate(
      [](auto& b) {
        b[0] = one(0, 1080, "b");
        b[1] = one(1, 900, "b");
        b[2] = one(2, 1100, "b", 12);
        b[3].status = CaseStatus::kFailed;
        b[3].message = "launch | <failed>\n& \"died\", 100%";
        b[4] = one(4, 1200, "b");
        b[5] = one(5, 1005, "a");
        b.pop_back();
      },
      options);
  verdict.comparison.notes.push_back("a note");
  verdict.comparison.cases[0].confirmations = {0.081, 0.079};
  return verdict;
}

TEST(VerdictJson, FollowsItsSchemaAndReadsBack) {
  for (const GateVerdict& verdict :
       {mixed_verdict(), gate([](auto&) {}), refuse({ErrorKind::kInvalid, "why"}, "edited", {})}) {
    const std::string text = verdict_to_json(verdict);
    const auto schema = nlohmann::json::parse(*read_file(CUDABK_DOCS "/schemas/cudabk-verdict-1.json"));
    for (const std::string& fault : test::SchemaChecker(schema).check(nlohmann::json::parse(text))) {
      ADD_FAILURE() << fault;
    }
    const Result<GateVerdict> again = parse_verdict(text, "v.json");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(verdict_to_json(*again), text);
    EXPECT_EQ(verdict_table(*again, {}), verdict_table(verdict, {}));
  }
}

TEST(VerdictJson, RefusesWhatIsNoIntactVerdict) {
  const std::string text = verdict_to_json(mixed_verdict());
  const auto message = [](const std::string& damaged) {
    const Result<GateVerdict> verdict = parse_verdict(damaged, "v.json");
    return verdict.ok() ? "accepted" : verdict.error().message;
  };
  EXPECT_NE(message(text.substr(0, 300)).find("truncated"), std::string::npos);
  EXPECT_NE(message(text + std::string("\0x", 2)).find("not JSON"), std::string::npos);
  EXPECT_NE(message("{}").find("no verdict"), std::string::npos);
  std::string edited = text;
  edited.replace(edited.find("\"exit_status\": 1"), 16, "\"exit_status\": 0");
  EXPECT_NE(message(edited).find("/exit_status"), std::string::npos);
  edited = text;
  edited.replace(edited.find("0.03"), 4, "0.50");
  EXPECT_NE(message(edited).find("digest"), std::string::npos);
}

TEST(Table, ShowsTheWorstFirstAndASummaryLast) {
  const std::string text = verdict_table(mixed_verdict(), {});
  EXPECT_LT(text.find("m=4"), text.find("m=0")) << text;
  EXPECT_LT(text.find("m=0"), text.find("m=2"));
  EXPECT_NE(text.find("all cases: mul_mat type=q4_K variant=auto"), std::string::npos) << text;
  EXPECT_NE(text.find("again: +8.1 %, +7.9 %"), std::string::npos);
  EXPECT_NE(text.find("note: a note\n"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_EQ(last.rfind("regressed: 2 of 6 cases are slower, worst +", 0), 0U) << last;
  EXPECT_NE(verdict_table(mixed_verdict(), {true, 10}).find("\x1b[31m"), std::string::npos);
  TableOptions short_table;
  short_table.quiet_rows = 2;
  EXPECT_NE(verdict_table(gate([](auto&) {}), short_table).find("... and 6 more"), std::string::npos);
}

TEST(Markdown, EscapesAndFoldsWhatNeedsNoAttention) {
  const std::string text = verdict_markdown(mixed_verdict());
  EXPECT_EQ(text.rfind("### ❌ cudabk gate", 0), 0U);
  EXPECT_NE(text.find("launch \\| &lt;failed> "), std::string::npos) << text;
  EXPECT_NE(text.find("<details>"), std::string::npos);
  EXPECT_NE(text.find("| **regressed** | +19."), std::string::npos) << text;
  EXPECT_EQ(verdict_markdown(gate([](auto&) {})).rfind("### ✅ cudabk gate\n\npass: 8 same\n", 0), 0U);
}

TEST(Annotations, AreEscapedWorkflowCommands) {
  const std::string text = verdict_annotations(mixed_verdict());
  EXPECT_NE(text.find("::error title=cudabk%3A regressed::mul_mat type=q4_K m=4"), std::string::npos) << text;
  EXPECT_NE(text.find("::warning title=cudabk%3A inconclusive::"), std::string::npos);
  EXPECT_NE(text.find("100%25"), std::string::npos);
  EXPECT_NE(text.find("<failed>%0A&"), std::string::npos);
  EXPECT_NE(text.find("::notice title=cudabk gate::regressed: 2 of 6"), std::string::npos);
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    EXPECT_EQ(text.compare(begin, 2, "::"), 0) << text.substr(begin, 40);
  }
  EXPECT_NE(verdict_annotations(refuse({ErrorKind::kInvalid, "broken"}, "edited", {})).find("cudabk%3A edited::broken"),
            std::string::npos);
}

TEST(Junit, CountsFailuresAndErrors) {
  const std::string text = verdict_junit(mixed_verdict());
  // Eight cases and the requirement; regressed 0 and 4; inconclusive 2, failed 3, missing 7 and the requirement.
  EXPECT_NE(text.find("tests=\"9\" failures=\"2\" errors=\"4\" skipped=\"0\""), std::string::npos) << text;
  EXPECT_NE(text.find("launch | &lt;failed&gt;"), std::string::npos);
  EXPECT_NE(verdict_junit(refuse({ErrorKind::kInvalid, "x"}, "edited", {})).find("errors=\"1\""), std::string::npos);
}

}  // namespace
}  // namespace cudabk
