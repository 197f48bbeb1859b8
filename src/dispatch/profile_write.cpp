// Profile -> JSON: one rule per line, so that a changed rule is a changed line.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "dispatch/profile.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string spaced(const Json& value) {  // {"a": 1, "b": [1, 2]} on one line
  if (value.is_object()) {
    std::string text;
    for (const auto& [name, entry] : value.items()) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", dump(name), spaced(entry));
    }
    return "{" + text + "}";
  }
  if (value.is_array()) {
    std::string text;
    for (const auto& entry : value) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", spaced(entry));
    }
    return "[" + text + "]";
  }
  return dump(value);
}

std::string rule_json(const Rule& rule) {
  Json json = Json::object();
  for (const auto& [name, interval] : rule.when) {
    json[name] = Json::array({interval.low, interval.high == INT64_MAX ? Json(nullptr) : Json(interval.high)});
  }
  json["use"] = rule.use;
  if (!rule.config.empty()) {
    json["config"] = rule.config;
  }
  if (!rule.code.empty()) {
    json["code"] = rule.code;
  }
  if (!rule.evidence.empty()) {
    json["evidence"] = rule.evidence;
  }
  return spaced(json);
}

// Items joined by ",\n", each on its own line with `indent` spaces.
std::string block(const std::vector<std::string>& items, int indent, char open, char close) {
  if (items.empty()) {
    return std::string{open, close};
  }
  std::string text(1, open);
  for (size_t i = 0; i < items.size(); ++i) {
    text += fmt::format("{}\n{:{}}{}", i == 0 ? "" : ",", "", indent + 2, items[i]);
  }
  return fmt::format("{}\n{:{}}{}", text, "", indent, close);
}

std::string tables_json(const Profile& profile) {
  std::vector<std::string> ops;
  for (const auto& [op, by_key] : profile.tables) {
    std::vector<std::string> tables;
    for (const auto& [key, table] : by_key) {
      std::vector<std::string> rules;
      for (const Rule& rule : table.rules) {
        rules.push_back(rule_json(rule));
      }
      tables.push_back(dump(key) + ": " + block(rules, 6, '[', ']'));
    }
    ops.push_back(dump(op) + ": " + block(tables, 4, '{', '}'));
  }
  return block(ops, 2, '{', '}');
}

std::string evidence_json(const Profile& profile) {
  std::vector<std::string> items;
  for (const auto& [name, text] : profile.evidence) {
    items.push_back(dump(name) + ": " + (Json::accept(text) ? spaced(Json::parse(text)) : dump(text)));
  }
  return block(items, 2, '{', '}');
}

}  // namespace

std::string profile_to_json(const Profile& profile) {
  const Profile::DeviceKey& d = profile.device;
  const Json device = {{"name", d.name}, {"arch", d.arch}, {"sm_count", d.sm_count}, {"l2_bytes", d.l2_bytes}};
  std::vector<std::string> fields = {
      "\"schema\": " + dump(std::string(Profile::kSchema)),
      "\"device\": " + spaced(device),
      "\"made_by\": " + spaced(Json(profile.made_by)),
      "\"layouts\": " + spaced(Json(profile.layouts)),
      "\"tables\": " + tables_json(profile),
      "\"constants\": " + spaced(Json(profile.constants)),
      "\"evidence\": " + evidence_json(profile),
  };
  return block(fields, 0, '{', '}') + "\n";
}

}  // namespace cudabk
