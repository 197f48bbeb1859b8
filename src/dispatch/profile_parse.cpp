// JSON -> Profile, with the JSON path in every complaint.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json_guard.h"
#include "dispatch/profile.h"
#include "formats/frag_shape.h"

namespace cudabk {
namespace {

using Json = nlohmann::json;

std::string type_text(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : fmt::format("{} ({} characters)", value.type_name(), text.size());
}

class Parser {
 public:
  Parser(std::string source, const FamilySet& families, ParseMode mode)
      : source_(std::move(source)), families_(families), mode_(mode) {}

  Result<Profile> run(std::string_view text);

 private:
  Error fail(const std::string& path, const std::string& reason) const {
    return invalid(fmt::format("{}: {}: {}", source_, path.empty() ? "/" : path, reason));
  }
  // Strict: the error. Lenient: a warning, and the entry is left out.
  Status complain(Error error) {
    if (mode_ == ParseMode::kStrict) {
      return error;
    }
    profile_.warnings.push_back(error.message + " (ignored)");
    return success();
  }

  Result<Json> read_json(std::string_view text) const;
  Status known_fields(const Json& object, const std::string& path, const std::vector<std::string>& names);
  Result<int64_t> integer(const Json& value, const std::string& path) const;
  Result<std::string> string(const Json& value, const std::string& path) const;
  Result<std::string> code_hash(const Json& value, const std::string& path) const;
  Status object(const Json& value, const std::string& path) const;

  Status parse_device(const Json& value);
  Status parse_made_by(const Json& value);
  Status parse_tables(const Json& value);
  Status parse_op(const std::string& op, const Json& value, const std::string& path);
  Status parse_table(const std::string& op, const std::string& key, const Json& value, const std::string& path);
  Result<Rule> parse_rule(const std::string& op, const Json& value, const std::string& path) const;
  Result<Interval> parse_interval(const Json& value, const std::string& path) const;
  Result<Config> parse_config(const Family& family, const Json& value, const std::string& path) const;
  Status parse_layouts(const Json& value);
  Status parse_constants(const Json& value);
  Status parse_evidence(const Json& value);

  std::string source_;
  const FamilySet& families_;
  ParseMode mode_;
  Profile profile_;
};

// RFC 6901: "~" and "/" inside a name.
std::string join(const std::string& path, const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return path + "/" + escaped;
}

Result<Json> Parser::read_json(std::string_view text) const {
  std::vector<std::set<std::string>> names;  // of the open objects
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  if (text.empty()) {
    return fail("", "the file is empty");
  }
  if (nests_deeper_than(text, kMaxJsonDepth)) {
    return fail("", fmt::format("nested deeper than {}", kMaxJsonDepth));
  }
  if (has_zero_byte(text)) {
    return fail("", "not valid JSON: it holds a zero byte");
  }
  try {
    Json json = Json::parse(text, watch);
    if (!repeated.empty()) {
      return fail("", fmt::format("the name \"{}\" appears twice in one object", repeated));
    }
    return json;
  } catch (const Json::exception& e) {
    std::string reason = e.what();  // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    if (const size_t end = reason.find("] "); end != std::string::npos) {
      reason.erase(0, end + 2);
    }
    return fail("", "not valid JSON: " + reason);
  }
}

Status Parser::object(const Json& value, const std::string& path) const {
  return value.is_object() ? success() : fail(path, fmt::format("expected an object, found {}", type_text(value)));
}

Result<int64_t> Parser::integer(const Json& value, const std::string& path) const {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits) {
    return fail(path, fmt::format("expected a whole number, found {}", type_text(value)));
  }
  return value.get<int64_t>();
}

Result<std::string> Parser::string(const Json& value, const std::string& path) const {
  if (!value.is_string()) {
    return fail(path, fmt::format("expected text, found {}", type_text(value)));
  }
  return value.get<std::string>();
}

// What `tune` writes. Any other text would never equal a hash, so that the rule stayed stale for ever.
Result<std::string> Parser::code_hash(const Json& value, const std::string& path) const {
  CUDABK_ASSIGN(std::string text, string(value, path));
  constexpr std::string_view kPrefix = "sha256:", kDigits = "0123456789abcdef";
  const bool good = text.size() == kPrefix.size() + 64 && text.starts_with(kPrefix) &&
                    text.find_first_not_of(kDigits, kPrefix.size()) == std::string::npos;
  if (!good) {
    return fail(path, fmt::format("expected \"sha256:\" and 64 digits of 0-9a-f, found {}; leave it out in a rule "
                                  "written by hand",
                                  type_text(value)));
  }
  return text;
}

Status Parser::known_fields(const Json& object, const std::string& path, const std::vector<std::string>& names) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      CUDABK_TRY(complain(fail(join(path, name), fmt::format("unknown field; known: {}", fmt::join(names, ", ")))));
    }
  }
  return success();
}

Status Parser::parse_device(const Json& value) {
  const std::string path = "/device";
  CUDABK_TRY(object(value, path));
  CUDABK_TRY(known_fields(value, path, {"name", "arch", "sm_count", "l2_bytes"}));
  for (const char* name : {"name", "arch"}) {
    if (!value.contains(name)) {
      return fail(path, fmt::format("has no \"{}\"", name));
    }
  }
  CUDABK_ASSIGN(profile_.device.name, string(value["name"], path + "/name"));
  CUDABK_ASSIGN(profile_.device.arch, string(value["arch"], path + "/arch"));
  if (profile_.device.name.empty()) {
    return fail(path + "/name", "is empty; \"*\" stands for every GPU of the architecture");
  }
  if (arch_number(profile_.device.arch) == 0) {
    return fail(path + "/arch",
                fmt::format("\"{}\" is not an architecture such as sm_80 or sm_90a", profile_.device.arch));
  }
  if (value.contains("sm_count")) {
    CUDABK_ASSIGN(const int64_t count, integer(value["sm_count"], path + "/sm_count"));
    if (count < 0 || count > 100000) {
      return fail(path + "/sm_count", fmt::format("{} is not a number of multiprocessors", count));
    }
    profile_.device.sm_count = static_cast<int>(count);
  }
  if (value.contains("l2_bytes")) {
    CUDABK_ASSIGN(profile_.device.l2_bytes, integer(value["l2_bytes"], path + "/l2_bytes"));
    if (profile_.device.l2_bytes < 0) {
      return fail(path + "/l2_bytes", "is negative");
    }
  }
  return success();
}

Status Parser::parse_made_by(const Json& value) {
  CUDABK_TRY(object(value, "/made_by"));
  for (const auto& [name, text] : value.items()) {
    CUDABK_ASSIGN(profile_.made_by[name], string(text, join("/made_by", name)));
  }
  return success();
}

Result<Interval> Parser::parse_interval(const Json& value, const std::string& path) const {
  if (!value.is_array() || value.size() != 2) {
    return fail(path, fmt::format("expected [low, high] (high may be null), found {}", type_text(value)));
  }
  Interval interval;
  CUDABK_ASSIGN(interval.low, integer(value[0], path + "/0"));
  if (!value[1].is_null()) {
    CUDABK_ASSIGN(interval.high, integer(value[1], path + "/1"));
  }
  if (interval.low < 0) {
    return fail(path + "/0", fmt::format("{} is negative", interval.low));
  }
  if (interval.low > interval.high) {
    return fail(path, fmt::format("low {} is above high {}", interval.low, interval.high));
  }
  return interval;
}

Result<Config> Parser::parse_config(const Family& family, const Json& value, const std::string& path) const {
  CUDABK_TRY(object(value, path));
  Config config;
  for (const auto& [name, entry] : value.items()) {
    const std::string at = join(path, name);
    const ConfigParam* param = find_param(family, name);
    if (param == nullptr) {
      std::vector<std::string> names;
      for (const ConfigParam& p : family.params) {
        names.push_back(p.name);
      }
      return fail(at, names.empty()
                          ? fmt::format("{} has no parameters", family.name)
                          : fmt::format("{} has no such parameter; it has {}", family.name, fmt::join(names, ", ")));
    }
    CUDABK_ASSIGN(const int64_t number, integer(entry, at));
    const bool allowed = std::any_of(param->values.begin(), param->values.end(), [&](int v) { return v == number; });
    if (!allowed && number != param->fallback) {
      return fail(
          at, fmt::format("{} is not a value of {}; allowed: {}", number, param->name, fmt::join(param->values, ", ")));
    }
    config[name] = static_cast<int>(number);
  }
  return config;
}

Result<Rule> Parser::parse_rule(const std::string& op, const Json& value, const std::string& path) const {
  CUDABK_TRY(object(value, path));
  Rule rule;
  if (!value.contains("use")) {
    return fail(path, "has no \"use\"");
  }
  CUDABK_ASSIGN(rule.use, string(value["use"], path + "/use"));
  const std::span<const Family> families = families_.by_op.at(op);
  const Family* family = find_family(families, rule.use);
  if (family == nullptr) {
    std::vector<std::string> names;
    for (const Family& f : families) {
      names.push_back(f.name);
    }
    return fail(path + "/use", fmt::format("{} has no family \"{}\"; it has {}", op, rule.use, fmt::join(names, ", ")));
  }
  const auto dims = families_.dims.find(op);
  for (const auto& [name, entry] : value.items()) {
    const std::string at = join(path, name);
    if (name == "use") {
      continue;
    }
    if (name == "config") {
      CUDABK_ASSIGN(rule.config, parse_config(*family, entry, at));
    } else if (name == "code") {
      CUDABK_ASSIGN(rule.code, code_hash(entry, at));
    } else if (name == "evidence") {
      CUDABK_ASSIGN(rule.evidence, string(entry, at));
    } else if (dims == families_.dims.end() ||
               std::find(dims->second.begin(), dims->second.end(), name) != dims->second.end()) {
      CUDABK_ASSIGN(Interval interval, parse_interval(entry, at));
      rule.when.emplace_back(name, interval);
    } else {
      return fail(at, fmt::format("unknown field; known: use, config, code, evidence and the dimensions {}",
                                  fmt::join(dims->second, ", ")));
    }
  }
  return rule;
}

Status Parser::parse_table(const std::string& op, const std::string& key, const Json& value, const std::string& path) {
  if (!value.is_array() || value.empty()) {
    return complain(fail(path, fmt::format("expected a list of at least one rule, found {}", type_text(value))));
  }
  Table table;
  for (size_t i = 0; i < value.size(); ++i) {
    Result<Rule> rule = parse_rule(op, value[i], fmt::format("{}/{}", path, i));
    if (rule.ok()) {
      table.rules.push_back(std::move(rule).value());
    } else {
      CUDABK_TRY(complain(std::move(rule).error()));
    }
  }
  if (!table.rules.empty() && !table.rules.back().when.empty()) {
    CUDABK_TRY(complain(
        fail(fmt::format("{}/{}", path, value.size() - 1), "the last rule must match everything (no dimensions)")));
  }
  if (!table.rules.empty()) {
    profile_.tables[op][key] = std::move(table);
  }
  return success();
}

Status Parser::parse_op(const std::string& op, const Json& value, const std::string& path) {
  if (!families_.by_op.contains(op)) {
    std::vector<std::string> names;
    for (const auto& [name, families] : families_.by_op) {
      names.push_back(name);
    }
    return complain(fail(path, fmt::format("no such op with a choice; there are {}", fmt::join(names, ", "))));
  }
  CUDABK_TRY(object(value, path));
  const auto keys = families_.keys.find(op);
  for (const auto& [key, table] : value.items()) {
    const std::string at = join(path, key);
    const bool known = key == "*" || keys == families_.keys.end() ||
                       std::find(keys->second.begin(), keys->second.end(), key) != keys->second.end();
    if (!known) {
      CUDABK_TRY(
          complain(fail(at, fmt::format("{} has no such table; keys are *, {}", op, fmt::join(keys->second, ", ")))));
      continue;
    }
    CUDABK_TRY(parse_table(op, key, table, at));
  }
  return success();
}

Status Parser::parse_tables(const Json& value) {
  CUDABK_TRY(object(value, "/tables"));
  for (const auto& [op, tables] : value.items()) {
    CUDABK_TRY(parse_op(op, tables, join("/tables", op)));
  }
  return success();
}

// Type of weights -> layout they are given.
Status Parser::parse_layouts(const Json& value) {
  CUDABK_TRY(object(value, "/layouts"));
  for (const auto& [type, entry] : value.items()) {
    const std::string at = join("/layouts", type);
    CUDABK_ASSIGN(const std::string layout, string(entry, at));
    const DTypeTraits* known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                            [&name = type](const DTypeTraits& row) { return name == row.name; });
    if (known == std::end(kDTypes)) {
      CUDABK_TRY(complain(fail(at, "no such type")));
    } else if (layout != "raw" && layout != "frag") {
      CUDABK_TRY(complain(fail(at, fmt::format("\"{}\" is not a layout; there are raw and frag", layout))));
    } else if (layout == "frag" && !frag_shape(known->type).exists()) {
      CUDABK_TRY(complain(fail(at, fmt::format("{} has no frag layout", type))));
    } else {
      profile_.layouts[type] = layout;
    }
  }
  return success();
}

Status Parser::parse_constants(const Json& value) {
  CUDABK_TRY(object(value, "/constants"));
  for (const auto& [name, entry] : value.items()) {
    const std::string at = join("/constants", name);
    if (!built_in_constants().contains(name)) {
      std::vector<std::string> names;
      for (const auto& [known, number] : built_in_constants()) {
        names.push_back(known);
      }
      CUDABK_TRY(complain(fail(at, fmt::format("unknown constant; known: {}", fmt::join(names, ", ")))));
      continue;
    }
    CUDABK_ASSIGN(const int64_t number, integer(entry, at));
    if (number < 0) {
      return fail(at, fmt::format("{} is negative", number));
    }
    profile_.constants[name] = number;
  }
  return success();
}

// Values are kept as JSON text; plain text that is not itself JSON is kept as it is.
Status Parser::parse_evidence(const Json& value) {
  CUDABK_TRY(object(value, "/evidence"));
  for (const auto& [name, entry] : value.items()) {
    const bool plain = entry.is_string() && !Json::accept(entry.get_ref<const std::string&>());
    profile_.evidence[name] = plain ? entry.get<std::string>() : entry.dump();
  }
  return success();
}

Result<Profile> Parser::run(std::string_view text) {
  CUDABK_ASSIGN(const Json json, read_json(text));
  CUDABK_TRY(object(json, ""));
  if (!json.contains("schema")) {
    return fail("/schema", fmt::format("is missing; expected \"{}\"", Profile::kSchema));
  }
  if (!json["schema"].is_string() || json["schema"].get_ref<const std::string&>() != Profile::kSchema) {
    return fail("/schema", fmt::format("expected \"{}\", found {}", Profile::kSchema, type_text(json["schema"])));
  }
  CUDABK_TRY(known_fields(json, "", {"schema", "device", "made_by", "layouts", "tables", "constants", "evidence"}));
  for (const char* name : {"device", "tables"}) {
    if (!json.contains(name)) {
      return fail("", fmt::format("has no \"{}\"", name));
    }
  }
  profile_.constants = built_in_constants();
  CUDABK_TRY(parse_device(json["device"]));
  if (json.contains("made_by")) {
    CUDABK_TRY(parse_made_by(json["made_by"]));
  }
  if (json.contains("layouts")) {
    CUDABK_TRY(parse_layouts(json["layouts"]));
  }
  CUDABK_TRY(parse_tables(json["tables"]));
  if (json.contains("constants")) {
    CUDABK_TRY(parse_constants(json["constants"]));
  }
  if (json.contains("evidence")) {
    CUDABK_TRY(parse_evidence(json["evidence"]));
  }
  profile_.source = source_;
  return std::move(profile_);
}

}  // namespace

Result<Profile> parse_profile(std::string_view json, std::string source, const FamilySet& families, ParseMode mode) {
  return Parser(std::move(source), families, mode).run(json);
}

}  // namespace cudabk
