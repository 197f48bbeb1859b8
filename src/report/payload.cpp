#include "report/payload.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/result.h"
#include "core/units.h"
#include "dispatch/problem.h"
#include "report/switches.h"
#include "results/render_rows.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSampleDigits = 6;  // of a sample: far below any timer's resolution

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}
Json per_second(const std::optional<double>& per_ns) { return per_ns ? number(*per_ns * 1e9) : Json(nullptr); }
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) {
    return 0;
  }
  const double scale = std::pow(10.0, kSampleDigits - 1 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values) {
    list.push_back(std::isfinite(v) ? Json(rounded(v)) : Json(nullptr));
  }
  return list;
}

Json run_json(const ResultFile& file) {
  const RunEnvironment& e = file.run.environment;
  const RunLimits& l = file.run.limits;
  const DeviceInfo& d = e.device;
  return {{"file", file.path.filename().string()},
          {"digest", file.digest},
          {"started", e.started},
          {"tool", e.tool_version},
          {"toolkit", text_or_null(e.toolkit)},
          {"complete", file.run.complete},
          {"reason", file.run.incomplete_reason},
          {"device",
           {{"name", d.name},
            {"arch", d.arch},
            {"sms", d.sm_count},
            {"l2", d.l2_bytes},
            {"memory", d.memory_bytes},
            {"driver", text_or_null(d.driver_text)},
            {"uuid", text_or_null(d.uuid)},
            {"emulated", d.emulated}}},
          {"limits",
           {{"read", per_second(l.read_bytes_per_ns)},
            {"copy", per_second(l.copy_bytes_per_ns)},
            {"gemm", per_second(l.gemm_operations_per_ns)},
            {"gemmText", l.gemm},
            {"note", l.note}}},
          {"profile", {{"source", e.profile_source}, {"why", e.profile_why}, {"warnings", e.profile_warnings}}},
          {"arguments", e.arguments},
          {"facts", e.facts},
          {"tags", e.tags},
          {"cases", file.run.cases.size()}};
}

Json kernels_json(const CaseResult& c) {
  Json list = Json::array();
  for (const LaunchResult& l : c.breakdown) {
    list.push_back({{"label", l.label},
                    {"kernel", l.kernel},
                    {"grid", l.grid},
                    {"block", l.block},
                    {"shared", l.shared_bytes},
                    {"registers", l.registers},
                    {"spills", l.spill_bytes},
                    {"time", number(l.median_ns)},
                    {"gap", number(l.gap_ns)}});
  }
  return list;
}

Json check_json(const CheckResult& check) {
  if (!check.done || !std::isfinite(check.nmse) || !std::isfinite(check.tolerance)) {
    return check.done ? Json{{"passed", check.passed}, {"nmse", 0}, {"tolerance", 0}, {"elements", check.elements}}
                      : Json(nullptr);
  }
  return {{"passed", check.passed}, {"nmse", check.nmse}, {"tolerance", check.tolerance}, {"elements", check.elements}};
}

// What identifies a row over several runs.
std::string row_key(const CaseResult& c) { return c.key + "#" + std::to_string(c.repetition); }

using History = std::map<std::string, std::vector<Json>>;

History history_of(const std::vector<ResultFile>& runs) {
  History history;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const CaseResult& c : runs[i].run.cases) {
      std::vector<Json>& row = history[row_key(c)];
      row.resize(runs.size(), nullptr);
      row[i] = number(c.time_ns());
    }
  }
  return history;
}

Json case_json(const CaseResult& c, const RunLimits& limits) {
  Json params = Json::object();
  for (const auto& [name, value] : c.params.values) {
    params[name] = value;
  }
  const bool timed = c.time_ns().has_value();
  const auto figure = [&](double v) { return timed ? number(v) : Json(nullptr); };
  const Summary s = c.summary.value_or(Summary{});
  return {{"key", c.key},
          {"rep", c.repetition},
          {"target", c.target},
          {"params", params},
          {"shape", c.note},
          {"variant", c.variant},
          {"launch", c.launch},
          {"fallback", c.fallback},
          {"fusion", c.fusion},
          {"cache", c.cache},
          {"status", status_name(c.status)},
          {"message", c.message},
          {"flags", c.flags},
          {"family", c.family},
          {"config", config_text(c.config)},
          {"rule", c.rule},
          {"fusions", c.fusions},
          {"time", number(c.time_ns())},
          {"low", figure(s.interval.low)},
          {"high", figure(s.interval.high)},
          {"halfWidth", figure(s.half_width.value_or(NAN))},
          {"count", c.samples_ns.size()},
          {"bytes", number(c.cost.bytes)},
          {"ops", number(c.cost.operations)},
          {"limit", number(limit_fraction(c, limits))},
          {"kernel", number(c.kernel_ns)},
          {"gap", number(c.gap_ns)},
          {"enqueue", number(c.host_enqueue_ns)},
          {"launches", c.launches},
          {"copies", c.copies},
          {"footprint", number(c.footprint_l2)},
          {"cold", c.cold_proven},
          {"timer", c.timer},
          {"stop", c.stop_reason},
          {"clocks", numbers(c.clocks_mhz)},
          {"check", check_json(c.check)},
          {"kernels", kernels_json(c)},
          {"samples", numbers(c.samples_ns)},
          {"command", c.command}};
}

Json changes_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const CaseComparison* c : worst_first(comparison)) {
    list.push_back({{"key", c->key},
                    {"before", number(c->baseline_ns)},
                    {"after", number(c->candidate_ns)},
                    {"change", number(c->change)},
                    {"low", number(c->change_low)},
                    {"high", number(c->change_high)},
                    {"verdict", verdict_name(c->verdict)},
                    {"why", c->message}});
  }
  return list;
}

}  // namespace

std::string report_payload(const ReportInput& input) {
  const RunResult& run = input.runs.back().run;
  Json data = {{"runs", Json::array()}, {"cases", Json::array()}, {"switches", Json::array()}, {"map", Json::array()}};
  for (const ResultFile& file : input.runs) {
    data["runs"].push_back(run_json(file));
  }
  const History history = history_of(input.runs);
  for (const CaseResult& c : run.cases) {
    Json entry = case_json(c, run.limits);
    entry["history"] = history.at(row_key(c));
    data["cases"].push_back(std::move(entry));
  }
  for (const SwitchPoint& s : switch_points(input)) {
    data["switches"].push_back({{"before", s.before},
                                {"after", s.after},
                                {"low", s.low},
                                {"high", s.high},
                                {"exact", s.exact},
                                {"from", s.from},
                                {"to", s.to}});
  }
  for (const MapCell& c : choice_map(input)) {
    data["map"].push_back(
        {{"type", c.type}, {"m", c.m}, {"n", c.n}, {"k", c.k}, {"family", c.family}, {"config", c.config}});
  }
  if (input.comparison) {
    const SideInfo& side = input.comparison->baseline;
    std::vector<std::string> names;
    for (const std::string& file : side.files) {
      names.push_back(std::filesystem::path(file).filename().string());
    }
    data["baseline"] = {{"files", names}, {"versions", side.versions}, {"started", side.started}};
    data["baselineNotes"] = input.comparison->notes;
    data["changes"] = changes_json(*input.comparison);
  }
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace cudabk
