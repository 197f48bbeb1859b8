// The verdict as a document: schema cudabk-verdict/1.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/result_digest.h"
#include "core/json_guard.h"
#include "results/gate.h"
#include "results/json_node.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& v) { return v && std::isfinite(*v) ? Json(*v) : Json(nullptr); }
Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

constexpr std::string_view kOnMissing[] = {"fail", "allow-new", "pass"};

Json options_json(const GateOptions& options) {
  Json json;
  json["threshold"] = options.compare.thresholds.fallback();
  json["threshold_rules"] = options.compare.thresholds.rule_texts();
  json["confidence"] = options.compare.confidence;
  json["min_samples"] = options.compare.min_samples;
  json["force"] = options.compare.force;
  json["judge_unchanged"] = options.compare.judge_unchanged;
  json["on_inconclusive"] = options.fail_inconclusive ? "fail" : "pass";
  json["on_missing"] = kOnMissing[static_cast<size_t>(options.on_missing)];
  json["require_rows"] = options.require_rows;
  return json;
}

Json side_json(const SideInfo& side) {
  Json json;
  json["path"] = text_or_null(side.path);
  json["files"] = Json::array();
  for (size_t i = 0; i < side.files.size(); ++i) {
    json["files"].push_back({{"path", side.files[i]}, {"digest", side.digests[i]}});
  }
  json["devices"] = side.devices;
  json["versions"] = side.versions;
  json["started"] = text_or_null(side.started);
  json["complete"] = side.complete;
  return json;
}

Json case_json(const CaseComparison& row) {
  Json json;
  json["key"] = row.key;
  json["target"] = row.target;
  json["device"] = row.device;
  json["verdict"] = verdict_name(row.verdict);
  json["reason"] = text_or_null(reason_name(row.reason));
  json["message"] = text_or_null(row.message);
  json["change"] = number(row.change);
  json["interval"] = Json::array({number(row.change_low), number(row.change_high)});
  json["cycles_change"] = number(row.cycles_change);
  json["p"] = number(row.p);
  json["p_adjusted"] = number(row.p_adjusted);
  json["threshold"] = row.threshold;
  json["baseline"] = Json{{"median_ns", number(row.baseline_ns)}, {"samples", row.baseline_samples}};
  json["candidate"] = Json{{"median_ns", number(row.candidate_ns)}, {"samples", row.candidate_samples}};
  json["confirmations"] = Json::array();
  for (const double change : row.confirmations) {
    json["confirmations"].push_back(number(change));
  }
  json["command"] = row.command;
  return json;
}

Json counts_json(const Comparison& comparison) {
  Json json;
  for (int i = 0; i <= static_cast<int>(Verdict::kUnchangedCode); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    json[std::string(verdict_name(verdict))] = comparison.count(verdict);
  }
  return json;
}

Json verdict_json(const GateVerdict& verdict) {
  Json json;
  json["schema"] = kVerdictSchema;
  json["verdict"] = verdict.name();
  json["exit_status"] = verdict.exit_status();
  json["summary"] = summary_line(verdict);
  json["findings"] = Json::array();
  for (const GateFinding& finding : verdict.findings) {
    json["findings"].push_back(
        {{"exit_status", finding.exit_status}, {"code", finding.code}, {"message", finding.message}});
  }
  json["tool"] = Json{{"name", "cudabk"}, {"version", verdict.tool_version}};
  json["options"] = options_json(verdict.options);
  json["baseline"] = side_json(verdict.comparison.baseline);
  json["candidate"] = side_json(verdict.comparison.candidate);
  json["counts"] = counts_json(verdict.comparison);
  json["notes"] = verdict.comparison.notes;
  json["cases"] = Json::array();
  for (const CaseComparison& row : verdict.comparison.cases) {
    json["cases"].push_back(case_json(row));
  }
  return json;
}

// ---- reading ----

template <class Enum>
Enum read_word(const JsonNode& node, Enum last, std::string_view (*name)(Enum)) {
  const std::string word = node.text_or_empty();
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name(static_cast<Enum>(i)) == word) {
      return static_cast<Enum>(i);
    }
  }
  node.complain(fmt::format("unknown word \"{}\"", word));
  return last;
}

SideInfo read_side(const JsonNode& node) {
  SideInfo side;
  side.path = node.member("path").text_or_empty();
  node.member("files").each([&](const JsonNode& file) {
    side.files.push_back(file.member("path").text());
    side.digests.push_back(file.member("digest").text());
  });
  side.devices = node.member("devices").texts();
  side.versions = node.member("versions").texts();
  side.started = node.member("started").text_or_empty();
  side.complete = node.member("complete").boolean();
  return side;
}

CaseComparison read_comparison(const JsonNode& node) {
  CaseComparison row;
  row.key = node.member("key").text();
  row.target = node.member("target").text();
  row.device = node.member("device").text();
  row.verdict = read_word(node.member("verdict"), Verdict::kUnchangedCode, verdict_name);
  row.reason = read_word(node.member("reason"), Reason::kNeitherSide, reason_name);
  row.message = node.member("message").text_or_empty();
  row.change = node.member("change").number_or_null();
  std::vector<std::optional<double>> interval;
  node.member("interval").each([&](const JsonNode& end) { interval.push_back(end.number_or_null()); });
  if (interval.size() == 2) {
    row.change_low = interval[0];
    row.change_high = interval[1];
  } else {
    node.member("interval").complain("expected two numbers");
  }
  row.cycles_change = node.member("cycles_change").number_or_null();
  row.p = node.member("p").number_or_null();
  row.p_adjusted = node.member("p_adjusted").number_or_null();
  row.threshold = node.member("threshold").number();
  row.baseline_ns = node.member("baseline").member("median_ns").number_or_null();
  row.baseline_samples = static_cast<size_t>(node.member("baseline").member("samples").integer());
  row.candidate_ns = node.member("candidate").member("median_ns").number_or_null();
  row.candidate_samples = static_cast<size_t>(node.member("candidate").member("samples").integer());
  node.member("confirmations").each([&](const JsonNode& change) { row.confirmations.push_back(change.number()); });
  row.command = node.member("command").text();
  return row;
}

GateOptions read_options(const JsonNode& node) {
  GateOptions options;
  options.compare.thresholds = Thresholds(node.member("threshold").number());
  for (const std::string& rule : node.member("threshold_rules").texts()) {
    if (const Status added = options.compare.thresholds.add_rules(rule, "rule"); !added.ok()) {
      node.member("threshold_rules").complain(added.error().message);
    }
  }
  options.compare.confidence = node.member("confidence").number();
  options.compare.min_samples = static_cast<size_t>(node.member("min_samples").integer());
  options.compare.force = node.member("force").boolean();
  options.compare.judge_unchanged = node.member("judge_unchanged").boolean();
  options.fail_inconclusive = node.member("on_inconclusive").text() == "fail";
  options.on_missing = read_word<OnMissing>(node.member("on_missing"), OnMissing::kPass,
                                            [](OnMissing word) { return kOnMissing[static_cast<size_t>(word)]; });
  options.require_rows = node.member("require_rows").texts();
  return options;
}

GateVerdict read_verdict(const JsonNode& root) {
  GateVerdict verdict;
  root.member("findings").each([&](const JsonNode& finding) {
    verdict.findings.push_back({static_cast<int>(finding.member("exit_status").integer(1, 255)),
                                finding.member("code").text(), finding.member("message").text()});
  });
  verdict.tool_version = root.member("tool").member("version").text();
  verdict.options = read_options(root.member("options"));
  verdict.comparison.baseline = read_side(root.member("baseline"));
  verdict.comparison.candidate = read_side(root.member("candidate"));
  verdict.comparison.notes = root.member("notes").texts();
  root.member("cases").each([&](const JsonNode& node) { verdict.comparison.cases.push_back(read_comparison(node)); });
  if (root.member("exit_status").integer(0, 255) != verdict.exit_status()) {
    root.member("exit_status").complain("does not follow from the findings");
  }
  return verdict;
}

}  // namespace

std::string verdict_to_json(const GateVerdict& verdict) {
  const auto dump = [](const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
  };
  Json json = verdict_json(verdict);
  json["digest"] = digest_of_document(Json::parse(dump(json, -1)));  // over what a reader will see
  return dump(json, 1) + "\n";
}

Result<GateVerdict> parse_verdict(std::string_view text, std::string_view name) {
  const auto fail = [&](const std::string& why) { return invalid(fmt::format("{}: {}", name, why)); };
  if (nests_deeper_than(text, kMaxJsonDepth)) {
    return fail(fmt::format("nested deeper than {}: no verdict", kMaxJsonDepth));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || has_zero_byte(text)) {
    return fail("truncated or not JSON");
  }
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kVerdictSchema) {
    return fail(fmt::format("no verdict of schema {}", kVerdictSchema));
  }
  std::string complaint;
  const JsonNode root(json, complaint);
  GateVerdict verdict = read_verdict(root);
  if (complaint.empty() && root.member("digest").text() != digest_of_document(json)) {
    complaint = "the digest does not match: the file was edited or damaged after cudabk wrote it";
  }
  return complaint.empty() ? Result<GateVerdict>(std::move(verdict)) : Result<GateVerdict>(fail(complaint));
}

}  // namespace cudabk
