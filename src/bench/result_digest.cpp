#include "bench/result_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

template <class Number>
void add_digits(std::string& out, Number value) {
  char buffer[40];
  const auto [end, size] = fmt::format_to_n(buffer, sizeof(buffer), "{}", value);
  out.append(buffer, end);
}

// Strings need no escapes here, only an unmistakable end: the length goes in front.
void add_text(std::string& out, std::string_view text) {
  add_digits(out, text.size());
  out += '"';
  out += text;
}

void add_number(std::string& out, double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: below it a double holds every whole number
  if (value == std::floor(value) && std::abs(value) < kExact) {
    add_digits(out, static_cast<int64_t>(value));
  } else {
    add_digits(out, value);
  }
}

void add_value(std::string& out, const Json& value, bool outermost);

void add_object(std::string& out, const Json& object, bool outermost) {
  std::vector<std::pair<std::string_view, const Json*>> members;
  members.reserve(object.size());
  for (auto it = object.begin(); it != object.end(); ++it) {
    if (!outermost || it.key() != "digest") {
      members.emplace_back(it.key(), &it.value());
    }
  }
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  out += '{';
  for (const auto& [name, value] : members) {
    add_text(out, name);
    out += ':';
    add_value(out, *value, false);
    out += ',';
  }
  out += '}';
}

void add_value(std::string& out, const Json& value, bool outermost) {
  switch (value.type()) {
    case Json::value_t::object:
      add_object(out, value, outermost);
      return;
    case Json::value_t::array:
      out += '[';
      for (const Json& element : value) {
        add_value(out, element, false);
        out += ',';
      }
      out += ']';
      return;
    case Json::value_t::string:
      add_text(out, value.get_ref<const std::string&>());
      return;
    case Json::value_t::number_unsigned:
      add_digits(out, value.get<uint64_t>());
      return;
    case Json::value_t::number_integer:
      add_digits(out, value.get<int64_t>());
      return;
    case Json::value_t::number_float:
      add_number(out, value.get<double>());
      return;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    default:
      out += "null";
  }
}

}  // namespace

std::string digest_of_document(const Json& document) {
  std::string text;
  add_value(text, document, true);
  return "sha256:" + sha256_hex(text);
}

}  // namespace cudabk
