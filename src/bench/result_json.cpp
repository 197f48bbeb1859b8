// The JSON documents of a run: schema cudabk-result/1 (docs/result-schema.md).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/result.h"
#include "bench/result_digest.h"
#include "core/json_guard.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

// NaN and infinity never reach a document.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
Json number(const std::optional<double>& v) { return v ? number(*v) : Json(nullptr); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values) {
    list.push_back(number(v));
  }
  return list;
}

template <class Pairs>
Json object_of(const Pairs& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) {
    object[name] = value;
  }
  return object;
}

Json summary_json(const CaseResult& result) {
  if (!result.summary || !result.time_ns()) {
    return nullptr;
  }
  const Summary& s = *result.summary;
  Json json;
  json["count"] = s.count;
  json["median_ns"] = number(s.median);
  json["mean_ns"] = number(s.mean);
  json["min_ns"] = number(s.min);
  json["max_ns"] = number(s.max);
  json["p10_ns"] = number(s.p10);
  json["p90_ns"] = number(s.p90);
  json["noise_percent"] = number(s.noise_percent);
  json["interval_ns"] = Json::array({number(s.interval.low), number(s.interval.high)});
  json["interval_coverage"] = number(s.interval.coverage);
  json["half_width"] = number(s.half_width);
  json["outliers"] = s.outliers;
  json["drift_percent"] = number(s.drift.percent);
  json["drift_detected"] = s.drift.detected;
  return json;
}

Json launch_json(const LaunchResult& launch) {
  Json json;
  json["label"] = launch.label;
  json["kernel"] = launch.kernel;
  json["code"] = text_or_null(launch.code_hash);
  json["grid"] = launch.grid;
  json["block"] = launch.block;
  json["shared_bytes"] = launch.shared_bytes;
  json["registers"] = launch.registers;
  json["spill_bytes"] = launch.spill_bytes;
  json["device_kernels"] = launch.kernels;
  json["median_ns"] = number(launch.median_ns);
  json["gap_ns"] = number(launch.gap_ns);
  return json;
}

Json check_json(const CheckResult& check) {
  if (!check.done) {
    return nullptr;
  }
  Json json;
  json["passed"] = check.passed;
  json["nmse"] = number(check.nmse);
  json["tolerance"] = number(check.tolerance);
  json["elements"] = check.elements;
  json["worst"] = text_or_null(check.worst);
  return json;
}

Json choice_json(const CaseResult& result) {
  if (result.family.empty()) {
    return nullptr;
  }
  Json json;
  json["family"] = result.family;
  json["config"] = object_of(result.config);
  json["rule"] = result.rule;
  return json;
}

void add_figures(Json& json, const CaseResult& result, const RunLimits& limits) {
  Json figures;
  figures["time_ns"] = number(result.time_ns());
  figures["bytes_per_second"] = number(result.bytes_per_ns() ? *result.bytes_per_ns() * 1e9 : NAN);
  figures["operations_per_second"] = number(result.operations_per_ns() ? *result.operations_per_ns() * 1e9 : NAN);
  figures["limit_fraction"] = number(limit_fraction(result, limits));
  figures["kernel_ns"] = number(result.kernel_ns);
  figures["gap_ns"] = number(result.gap_ns);
  figures["span_ns"] = number(result.span_ns);
  figures["span_time_ns"] = number(result.span_time_ns);
  figures["host_enqueue_ns"] = number(result.host_enqueue_ns);
  json["figures"] = std::move(figures);
}

Json case_json(const CaseResult& result, const RunLimits& limits) {
  Json json;
  json["key"] = result.key;
  json["repetition"] = result.repetition;
  json["target"] = result.target;
  json["params"] = object_of(result.params.values);
  json["shape_name"] = text_or_null(result.note);
  json["variant"] = result.variant;
  json["launch"] = result.launch;
  json["launch_fallback"] = text_or_null(result.fallback);
  json["fusion"] = result.fusion;
  json["cache"] = result.cache;
  json["status"] = status_name(result.status);
  json["message"] = text_or_null(result.message);
  json["flags"] = result.flags;
  json["seed"] = result.seed;
  json["choice"] = choice_json(result);
  json["fusions"] = result.fusions;
  json["copies"] = result.copies;
  json["launches"] = result.launches;
  json["weight_bytes_per_replay"] = result.weight_bytes;
  json["layout"] = result.layout;
  json["repack"] = {{"tensors", result.repack.tensors}, {"bytes", result.repack.bytes}, {"ns", result.repack.ns}};
  json["footprint_l2"] = number(result.footprint_l2);
  json["cold_proven"] = result.cold_proven;
  json["timer"] = text_or_null(result.timer);
  json["stop_reason"] = text_or_null(result.stop_reason);
  json["warmup_replays"] = result.warmup_replays;
  json["cost"] = Json{{"bytes", number(result.cost.bytes)},
                      {"operations", number(result.cost.operations)},
                      {"weight_bytes", number(result.cost.weight_bytes)}};
  add_figures(json, result, limits);
  json["summary"] = summary_json(result);
  json["samples_ns"] = numbers(result.samples_ns);
  json["clocks_mhz"] = numbers(result.clocks_mhz);
  json["clock_samples"] = result.clock_samples;
  json["check"] = check_json(result.check);
  json["kernels"] = Json::array();
  for (const LaunchResult& launch : result.breakdown) {
    json["kernels"].push_back(launch_json(launch));
  }
  json["command"] = result.command;
  return json;
}

Json device_json(const DeviceInfo& device) {
  Json json;
  json["id"] = device.id;
  json["name"] = device.name;
  json["arch"] = device.arch;
  json["sm_count"] = device.sm_count;
  json["l2_bytes"] = device.l2_bytes;
  json["memory_bytes"] = device.memory_bytes;
  json["driver"] = text_or_null(device.driver_text);
  json["uuid"] = text_or_null(device.uuid);
  json["emulated"] = device.emulated;
  return json;
}

Json environment_json(const RunEnvironment& environment) {
  Json json;
  json["tool"] = Json{{"name", "cudabk"}, {"version", environment.tool_version}};
  json["device"] = device_json(environment.device);
  json["toolkit"] = text_or_null(environment.toolkit);
  json["profile"] = Json{{"source", environment.profile_source},
                         {"why", environment.profile_why},
                         {"warnings", environment.profile_warnings}};
  json["facts"] = object_of(environment.facts);
  json["tags"] = object_of(environment.tags);
  json["arguments"] = environment.arguments;
  json["started"] = environment.started;
  return json;
}

Json limits_json(const RunLimits& limits) {
  const auto per_second = [](const std::optional<double>& v) { return v ? number(*v * 1e9) : Json(nullptr); };
  Json json;
  json["read_bytes_per_second"] = per_second(limits.read_bytes_per_ns);
  json["copy_bytes_per_second"] = per_second(limits.copy_bytes_per_ns);
  json["gemm_operations_per_second"] = per_second(limits.gemm_operations_per_ns);
  json["gemm"] = text_or_null(limits.gemm);
  json["note"] = text_or_null(limits.note);
  return json;
}

// Invalid UTF-8 (file names, tags) is replaced, never an exception.
std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

Json header_json(const RunResult& run) {
  Json json;
  json["schema"] = kResultSchema;
  json["complete"] = run.complete;
  json["incomplete_reason"] = text_or_null(run.incomplete_reason);
  json["environment"] = environment_json(run.environment);
  json["limits"] = limits_json(run.limits);
  return json;
}

}  // namespace

std::string result_to_json(const RunResult& run) {
  Json json = header_json(run);
  json["cases"] = Json::array();
  for (const CaseResult& result : run.cases) {
    json["cases"].push_back(case_json(result, run.limits));
  }
  // Over what a reader will see: writing replaces invalid UTF-8.
  json["digest"] = digest_of_document(Json::parse(dump(json, -1)));
  return dump(json, 1) + "\n";
}

std::string case_to_jsonl(const CaseResult& result, const RunLimits& limits) {
  return dump(case_json(result, limits), -1) + "\n";
}

std::string result_to_jsonl(const RunResult& run) {
  std::string text = dump(header_json(run), -1) + "\n";
  for (const CaseResult& result : run.cases) {
    text += case_to_jsonl(result, run.limits);
  }
  return text;
}

Result<std::string> digest_of_result(std::string_view text) {
  if (nests_deeper_than(text, kMaxJsonDepth)) {
    return invalid(fmt::format("not a {} document: nested deeper than {}", kResultSchema, kMaxJsonDepth));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("schema", Json()) != kResultSchema || !json.contains("cases")) {
    return invalid(fmt::format("not a {} document", kResultSchema));
  }
  return digest_of_document(json);
}

}  // namespace cudabk
