#include "results/json_node.h"

#include <fmt/format.h>

#include <limits>

namespace cudabk {
namespace {

const JsonNode::Json kNull;

}  // namespace

std::string JsonNode::path() const {
  if (parent_ == nullptr) {
    return "";
  }
  return name_ != nullptr ? fmt::format("{}/{}", parent_->path(), name_)
                          : fmt::format("{}/{}", parent_->path(), index_);
}

void JsonNode::complain(const std::string& what) const {
  if (fault_->empty()) {
    const std::string where = path();
    *fault_ = fmt::format("{}: {}", where.empty() ? "/" : where, what);
  }
}

bool JsonNode::expect(bool fits, const char* what) const {
  if (!fits && fault_->empty()) {
    const std::string found = json_->dump(-1, ' ', false, Json::error_handler_t::replace);
    complain(fmt::format("expected {}, found {}", what, found.size() <= 40 ? found : json_->type_name()));
  }
  return fits;
}

JsonNode JsonNode::member(const char* name) const {
  if (!expect(json_->is_object(), "an object")) {
    return {kNull, this, name, 0};
  }
  const auto it = json_->find(name);
  if (it == json_->end()) {
    complain(fmt::format("lacks \"{}\"", name));
    return {kNull, this, name, 0};
  }
  return {it.value(), this, name, 0};
}

std::string JsonNode::text() const {
  return expect(json_->is_string(), "text") ? json_->get_ref<const std::string&>() : std::string();
}

std::string JsonNode::text_or_empty() const { return null() ? std::string() : text(); }

std::vector<std::string> JsonNode::texts() const {
  std::vector<std::string> texts;
  each([&](const JsonNode& element) { texts.push_back(element.text()); });
  return texts;
}

bool JsonNode::boolean() const { return expect(json_->is_boolean(), "true or false") && json_->get<bool>(); }

double JsonNode::number() const { return number_or_null().value_or(std::numeric_limits<double>::quiet_NaN()); }

std::optional<double> JsonNode::number_or_null() const {
  if (null() || !expect(json_->is_number(), "a number or null")) {
    return std::nullopt;
  }
  return json_->get<double>();
}

int64_t JsonNode::integer(int64_t low, int64_t high) const {
  const bool whole = json_->is_number_integer() &&
                     (!json_->is_number_unsigned() ||
                      json_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!expect(whole, "a whole number")) {
    return low;
  }
  const auto value = json_->get<int64_t>();
  if (value < low || value > high) {
    complain(fmt::format("{} is not between {} and {}", value, low, high));
    return low;
  }
  return value;
}

uint64_t JsonNode::unsigned_integer() const {
  return expect(json_->is_number_unsigned(), "a whole number >= 0") ? json_->get<uint64_t>() : 0;
}

}  // namespace cudabk
