// An explanation for people and for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "device/label.h"
#include "tuning/explain.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

std::string dim_text(const Dim3& d) {
  return d.z > 1   ? fmt::format("{}x{}x{}", d.x, d.y, d.z)
         : d.y > 1 ? fmt::format("{}x{}", d.x, d.y)
                   : fmt::format("{}", d.x);
}

std::string variant_text(const Choice& choice) {
  const std::string config = config_text(choice.config);
  return config.empty() ? choice.family : choice.family + " " + config;
}

using Lines = std::vector<std::pair<std::string, std::string>>;

// "passed    NAME: WHY" and lines below it. One that was printed already (`printed`: list -> its node) is not repeated.
std::string list_text(const std::string& title, const Lines& lines, const std::string& node,
                      std::map<std::string, std::string>& printed) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("{:<10}{}: {}\n", i == 0 ? title : "", lines[i].first, lines[i].second);
  }
  const auto [it, is_new] = printed.emplace(text, node);
  return is_new || text.empty() ? text : fmt::format("{:<10}as for node {}\n", title, it->second);
}

void choice_lines(const ExplainedChoice& c, bool name_node, std::map<std::string, std::string>& printed,
                  std::string& text) {
  if (name_node) {
    text += fmt::format("\nnode      {}\n", c.node);
  }
  text += fmt::format("problem   {}\n", c.problem.text());
  text += fmt::format("rule      {}{}{}\n", c.choice.rule >= 0 ? fmt::format("#{}: ", c.choice.rule) : "", c.rule,
                      c.stale ? "  [stale: its code changed since it was measured]" : "");
  if (!c.evidence.empty()) {
    text += fmt::format("evidence  {}\n", c.evidence);
  }
  text += fmt::format("variant   {}\n", variant_text(c.choice));
  text += list_text("passed", c.choice.passed_over, c.node, printed);
  text += list_text("others", c.others, c.node, printed);
}

std::string launch_line(const ExplainedLaunch& l) {
  std::string line = fmt::format("{}: {}", l.label, l.kernel);
  if (l.report_note == "library call" || l.report_note == "fill") {
    return line;
  }
  line += fmt::format("\n            grid {}, block {}", dim_text(l.grid), dim_text(l.block));
  if (!l.report) {
    return line + fmt::format(", shared {} B dynamic; registers unknown: {}", l.dynamic_shared_bytes, l.report_note);
  }
  const int64_t shared = static_cast<int64_t>(l.dynamic_shared_bytes) + l.report->static_shared_bytes;
  line += fmt::format(", {} registers, {} B shared memory", l.report->registers, shared);
  const int spills = l.report->spill_store_bytes + l.report->spill_load_bytes;
  return spills > 0 ? line + fmt::format(", SPILLS {} B", spills) : line;
}

void fusion_lines(const Explanation& e, std::string& text) {
  for (const FusionRecord& f : e.fusions) {
    text += f.count > 0 ? fmt::format("fusion    {}: {} nodes from node {} became one\n", f.rule, f.count, f.node)
                        : fmt::format("near miss {} at node {}: {}\n", f.rule, f.node, f.near_miss);
  }
  if (!e.other_fusions.empty()) {
    text += fmt::format("fusion    no pattern here for {}\n", fmt::join(e.other_fusions, ", "));
  }
}

std::string operations_text(double operations) {
  if (operations < 1e6) {
    return fmt::format("{:.4g} kFLOP", operations * 1e-3);
  }
  return operations < 1e9 ? fmt::format("{:.4g} MFLOP", operations * 1e-6)
                          : fmt::format("{:.4g} GFLOP", operations * 1e-9);
}

Json launch_json(const ExplainedLaunch& l) {
  Json json = {{"label", l.label},
               {"kernel", l.kernel},
               {"grid", {l.grid.x, l.grid.y, l.grid.z}},
               {"block", {l.block.x, l.block.y, l.block.z}},
               {"dynamic_shared_bytes", l.dynamic_shared_bytes}};
  if (l.report) {
    json["registers"] = l.report->registers;
    json["static_shared_bytes"] = l.report->static_shared_bytes;
    json["spill_bytes"] = l.report->spill_store_bytes + l.report->spill_load_bytes;
    json["code"] = l.report->code_hash;
  } else {
    json["note"] = l.report_note;
  }
  return json;
}

Json choice_json(const ExplainedChoice& c) {
  Json dims = Json::object();
  for (const auto& [name, value] : c.problem.dims) {
    dims[name] = value;
  }
  Json passed = Json::array();
  for (const auto& [rule, why] : c.choice.passed_over) {
    passed.push_back({{"rule", rule}, {"why", why}});
  }
  for (const auto& [family, why] : c.others) {
    passed.push_back({{"family", family}, {"why", why}});
  }
  return {{"node", c.node},
          {"problem", {{"op", c.problem.op}, {"key", c.problem.key}, {"dims", dims}}},
          {"rule_index", c.choice.rule < 0 ? Json(nullptr) : Json(c.choice.rule)},
          {"rule", c.rule},
          {"evidence", c.evidence},
          {"stale", c.stale},
          {"variant", {{"use", c.choice.family}, {"config", Json(c.choice.config)}}},
          {"passed_over", passed}};
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  std::string text = fmt::format("device    {}\n",
                                 device_label(e.device.name, e.device.arch, fmt::format("{} SMs", e.device.sm_count)));
  text += fmt::format("profile   {} ({})\n", e.profile_source, e.profile_why);
  for (const ExplainedLayout& l : e.layouts) {
    text += fmt::format(
        "layout    {} {}, {}{}\n", l.tensor, l.layout, format_bytes(static_cast<double>(l.stored_bytes)),
        l.note.empty() ? fmt::format(" (raw {})", format_bytes(static_cast<double>(l.raw_bytes))) : ": " + l.note);
  }
  std::map<std::string, std::string> printed;
  for (const ExplainedChoice& c : e.choices) {
    choice_lines(c, e.choices.size() > 1, printed, text);
  }
  if (e.choices.empty()) {
    text += fmt::format("problem   {} {}\nvariant   one kernel only: nothing to choose\n", e.target, e.params.text());
  }
  text += e.choices.size() > 1 ? "\n" : "";
  for (size_t i = 0; i < e.launches.size(); ++i) {
    text += fmt::format("launch {:<3}{}\n", i + 1, launch_line(e.launches[i]));
  }
  if (e.launches.empty()) {
    text += "launch    none: the result is empty or a view\n";
  }
  if (e.scratch_bytes > 0) {
    text += fmt::format("scratch   {}\n", format_bytes(static_cast<double>(e.scratch_bytes)));
  }
  fusion_lines(e, text);
  text += fmt::format("bytes     {} compulsory, {} of them weights\n", format_bytes(e.cost.bytes),
                      format_bytes(e.cost.weight_bytes));
  text += fmt::format("work      {}, {:.3g} per byte\n", operations_text(e.cost.operations),
                      e.cost.bytes > 0 ? e.cost.operations / e.cost.bytes : 0);
  text += fmt::format("roofs     read {}, products {:.4g} TFLOP/s; {}\n", format_rate(e.roofs.read_bytes_per_ns),
                      e.roofs.operations_per_ns * 1e-3, e.roofs.origin);
  text += fmt::format("limit     {} (memory {}, compute {}, {} launch{} {})\n", e.limit, format_time_ns(e.memory_ns),
                      format_time_ns(e.compute_ns), e.launches.size(), e.launches.size() == 1 ? "" : "es",
                      format_time_ns(e.launch_ns));
  text += fmt::format("predicted {} at the roof\n", format_time_ns(e.predicted_ns));
  for (const std::string& warning : e.profile_warnings) {
    text += "warning   " + warning + "\n";
  }
  return text;
}

std::string explanation_json(const Explanation& e) {
  Json params = Json::object();
  for (const auto& [name, value] : e.params.values) {
    params[name] = value;
  }
  Json layouts = Json::array(), choices = Json::array(), launches = Json::array(), fusions = Json::array();
  for (const ExplainedLayout& l : e.layouts) {
    layouts.push_back({{"tensor", l.tensor},
                       {"layout", l.layout},
                       {"raw_bytes", l.raw_bytes},
                       {"stored_bytes", l.stored_bytes},
                       {"note", l.note}});
  }
  for (const ExplainedChoice& c : e.choices) {
    choices.push_back(choice_json(c));
  }
  for (const ExplainedLaunch& l : e.launches) {
    launches.push_back(launch_json(l));
  }
  for (const FusionRecord& f : e.fusions) {
    fusions.push_back({{"rule", f.rule}, {"node", f.node}, {"nodes", f.count}, {"near_miss", f.near_miss}});
  }
  const Json json = {
      {"schema", "cudabk-explain/1"},
      {"target", e.target},
      {"params", params},
      {"device",
       {{"id", e.device.id},
        {"name", e.device.name},
        {"arch", e.device.arch},
        {"sm_count", e.device.sm_count},
        {"emulated", e.device.emulated}}},
      {"profile", {{"source", e.profile_source}, {"why", e.profile_why}, {"warnings", e.profile_warnings}}},
      {"layouts", layouts},
      {"choices", choices},
      {"launches", launches},
      {"scratch_bytes", e.scratch_bytes},
      {"fusions", fusions},
      {"cost", {{"bytes", e.cost.bytes}, {"weight_bytes", e.cost.weight_bytes}, {"operations", e.cost.operations}}},
      {"roofs",
       {{"read_bytes_per_ns", e.roofs.read_bytes_per_ns},
        {"operations_per_ns", e.roofs.operations_per_ns},
        {"origin", e.roofs.origin}}},
      {"limit", e.limit},
      {"memory_ns", e.memory_ns},
      {"compute_ns", e.compute_ns},
      {"launch_ns", e.launch_ns},
      {"predicted_ns", e.predicted_ns}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cudabk
