#include "bench/suites.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "bench/layer.h"
#include "bench/sweep.h"
#include "core/file.h"

namespace cudabk {
namespace {

constexpr SuiteInfo kSuites[] = {
    {"smoke", "a few small cases of every op: does everything run and verify"},
    {"decode", "one and a few tokens through the matrices of real models, and a layer"},
    {"prefill", "512 and 2048 tokens through the matrices of real models, and a layer"},
    {"all", "every op with its default axes, and a layer"},
};

struct Entry {
  const char* target;
  std::map<std::string, std::string> axes;
  const char* shapes = "";
};

// On the emulated device a suite keeps its form and shrinks its sizes.
std::vector<Entry> entries(std::string_view suite, bool emulated) {
  const std::string types = "q4_K,q6_K,q8_0,f16";
  if (suite == "smoke") {
    return {{"mul_mat", {{"type", "q4_0,q8_0,q4_K,q6_K,f16,bf16,f32"}, {"m", "64"}, {"k", "512"}, {"n", "1,8,33"}}},
            {"add", {}},
            {"mul", {}},
            {"rms_norm", {}},
            {"swiglu", {}},
            {"cpy", {}},
            {"layer", {{"hidden", "256"}, {"ffn", "512"}, {"tokens", "1,8"}}}};
  }
  const bool decode = suite == "decode";
  const std::string columns = decode ? "1,2,4,8" : "512,2048";
  if (emulated) {
    return {{"mul_mat", {{"type", types}, {"m", "256"}, {"k", "1024"}, {"n", decode ? "1,4" : "64"}}},
            {"layer", {{"tokens", decode ? "1" : "32"}}}};
  }
  return {{"mul_mat", {{"type", types}, {"n", columns}}, "llama-3.1-8b"},
          {"mul_mat", {{"type", types}, {"n", columns}}, "qwen3-8b"},
          {"layer", {{"tokens", columns}}}};
}

Result<const OpDef*> target_op(std::string_view name) {
  if (name == layer_target().name()) {
    return &layer_target();
  }
  return find_op(name);
}

Result<std::string> value_text(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_number_integer()) {
    return value.dump();
  }
  return invalid("values must be texts or whole numbers");
}

Status add_selected(std::vector<BenchCase>& cases, const OpDef& op, const Selection& selection,
                    const DeviceInfo& device, const Profile* profile) {
  CUDABK_ASSIGN(std::vector<BenchCase> more, select_cases(op, selection, device, profile));
  cases.insert(cases.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return success();
}

// Modes and filters are applied once, over all cases.
Selection plain(const std::map<std::string, std::string>& axes, std::string shapes, std::string variant) {
  Selection s;
  s.axes = axes;
  s.shapes = std::move(shapes);
  s.variant = std::move(variant);
  return s;
}

Status add_line(std::vector<BenchCase>& cases, const std::string& line, const DeviceInfo& device,
                const Profile* profile) {
  const nlohmann::json entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object() || !entry.contains("target") || !entry["target"].is_string()) {
    return invalid("not an object with a \"target\"");
  }
  CUDABK_ASSIGN(const OpDef* op, target_op(entry["target"].get<std::string>()));
  std::map<std::string, std::string> axes;
  if (entry.contains("params")) {
    if (!entry["params"].is_object()) {
      return invalid("\"params\" is not an object");
    }
    for (const auto& [name, value] : entry["params"].items()) {
      CUDABK_ASSIGN(axes[name], value_text(value));
    }
  }
  const bool has_variant = entry.contains("variant") && entry["variant"].is_string();
  const std::string variant = has_variant ? entry["variant"].get<std::string>() : "auto";
  return add_selected(cases, *op, plain(axes, "", variant), device, profile);
}

Result<std::vector<BenchCase>> file_cases(const std::string& path, const DeviceInfo& device, const Profile* profile) {
  CUDABK_ASSIGN(const std::string text, read_file(path));
  std::vector<BenchCase> cases;
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    if (Status added = add_line(cases, line, device, profile); !added.ok()) {
      return std::move(added).error().with_context(fmt::format("{}:{}", path, line_number));
    }
  }
  return cases;
}

}  // namespace

std::span<const SuiteInfo> suites() { return kSuites; }

std::string op_names() {
  std::string names;
  for (const OpDef* op : all_ops()) {
    names += names.empty() ? "" : ", ";
    names += std::string(op->name()) + (op->alias().empty() ? "" : " (" + std::string(op->alias()) + ")");
  }
  return names;
}

Result<std::vector<BenchCase>> suite_cases(const std::string& name, const Selection& selection,
                                           const DeviceInfo& device, const Profile* profile) {
  if (!selection.axes.empty() || !selection.shapes.empty() || selection.variant != "auto") {
    return invalid("--suite names its own axes, shapes and variants; use --filter and --exclude to narrow it");
  }
  std::vector<BenchCase> cases;
  if (name.rfind('@', 0) == 0) {
    CUDABK_ASSIGN(cases, file_cases(name.substr(1), device, profile));
    if (cases.empty()) {
      return Error{ErrorKind::kNothing, name.substr(1) + " holds no case"};
    }
    return with_modes(cases, selection);
  }
  std::vector<std::string> names;
  for (const SuiteInfo& suite : kSuites) {
    names.emplace_back(suite.name);
  }
  CUDABK_ASSIGN(const std::string suite, match_word("suite", name, names));
  if (suite == "all") {
    for (const OpDef* op : all_ops()) {
      CUDABK_TRY(add_selected(cases, *op, plain({}, "", "auto"), device, profile));
    }
    CUDABK_TRY(add_selected(cases, layer_target(), plain({}, "", "auto"), device, profile));
  } else {
    for (const Entry& entry : entries(suite, device.emulated)) {
      CUDABK_ASSIGN(const OpDef* op, target_op(entry.target));
      CUDABK_TRY(add_selected(cases, *op, plain(entry.axes, entry.shapes, "auto"), device, profile));
    }
  }
  return with_modes(cases, selection);
}

}  // namespace cudabk
