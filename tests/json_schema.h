// Checks a JSON document against the part of JSON Schema that docs/schemas uses: type, properties, required,
// additionalProperties, items, minItems, maxItems, enum, const, minimum, pattern, $ref to #/$defs.
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace cudabk::test {

class SchemaChecker {
 public:
  explicit SchemaChecker(nlohmann::json schema) : root_(std::move(schema)) {}

  // Every violation as "/cases/0/launch: not one of ..."; empty for a valid document.
  std::vector<std::string> check(const nlohmann::json& document) {
    faults_.clear();
    check(document, root_, "");
    return faults_;
  }

 private:
  using Json = nlohmann::json;

  void fault(const std::string& path, const std::string& what) { faults_.push_back(path + ": " + what); }

  static bool has_type(const Json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
           (type == "integer" && value.is_number_integer());
  }

  void check_type(const Json& value, const Json& schema, const std::string& path) {
    const Json& type = schema["type"];
    bool ok = false;
    for (const Json& t : type.is_array() ? type : Json::array({type})) {
      ok = ok || has_type(value, t.get<std::string>());
    }
    if (!ok) {
      fault(path, "is " + std::string(value.type_name()) + ", not " + type.dump());
    }
  }

  void check_object(const Json& value, const Json& schema, const std::string& path) {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        fault(path, "lacks " + name.dump());
      }
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        check(member, properties[name], path + "/" + name);
      } else if (schema.contains("additionalProperties")) {
        const Json& more = schema["additionalProperties"];
        if (more.is_boolean() && !more.get<bool>()) {
          fault(path, "has the unknown member " + name);
        } else if (more.is_object()) {
          check(member, more, path + "/" + name);
        }
      }
    }
  }

  void check_array(const Json& value, const Json& schema, const std::string& path) {
    if (value.size() < schema.value("minItems", size_t{0}) || value.size() > schema.value("maxItems", SIZE_MAX)) {
      fault(path, "has " + std::to_string(value.size()) + " items");
    }
    for (size_t i = 0; schema.contains("items") && i < value.size(); ++i) {
      check(value[i], schema["items"], path + "/" + std::to_string(i));
    }
  }

  void check(const Json& value, const Json& schema, const std::string& path) {
    static const std::set<std::string> kKnown = {"type",    "properties", "required", "additionalProperties",
                                                 "items",   "minItems",   "maxItems", "enum",
                                                 "const",   "minimum",    "pattern",  "$ref",
                                                 "$schema", "$id",        "title",    "$defs",
                                                 "$comment"};
    for (const auto& entry : schema.items()) {
      if (kKnown.count(entry.key()) == 0) {
        fault(path, "the checker does not know the keyword " + entry.key());
      }
    }
    if (schema.contains("$ref")) {
      check(value, root_.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), path);
      return;
    }
    if (schema.contains("type")) {
      check_type(value, schema, path);
    }
    if (schema.contains("const") && value != schema["const"]) {
      fault(path, "is not " + schema["const"].dump());
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      fault(path, value.dump() + " is not one of " + schema["enum"].dump());
    }
    if (schema.contains("minimum") && value.is_number() && value.get<double>() < schema["minimum"].get<double>()) {
      fault(path, value.dump() + " is below the minimum");
    }
    if (schema.contains("pattern") && value.is_string() &&
        !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
      fault(path, value.dump() + " does not match " + schema["pattern"].dump());
    }
    if (value.is_object()) {
      check_object(value, schema, path);
    } else if (value.is_array()) {
      check_array(value, schema, path);
    }
  }

  Json root_;
  std::vector<std::string> faults_;
};

}  // namespace cudabk::test
