#include "ops/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/units.h"

namespace cudabk {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string valid_names() {
  std::string names;
  for (const OpDef* op : all_ops()) {
    names += names.empty() ? "" : ", ";
    names += op->name();
    if (!op->alias().empty()) {
      names += fmt::format(" ({})", op->alias());
    }
  }
  return names;
}

}  // namespace

std::string CaseParams::text() const {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::string CaseParams::get(std::string_view name) const {
  for (const auto& [n, value] : values) {
    if (n == name) {
      return value;
    }
  }
  return "";
}

Result<int64_t> CaseParams::get_int(std::string_view name) const {
  const std::string text = get(name);
  if (text.empty()) {
    return invalid(fmt::format("{}: a whole number is required", name));
  }
  auto value = parse_int(text);
  if (!value.ok()) {
    return std::move(value).error().with_context(name);
  }
  return value;
}

void CaseParams::set(std::string_view name, std::string value) {
  for (auto& [n, v] : values) {
    if (n == name) {
      v = std::move(value);
      return;
    }
  }
  values.emplace_back(name, std::move(value));
}

Problem OpDef::problem(const Tensor&) const { return {std::string(name()), "", {}}; }

Result<const OpDef*> find_op(std::string_view name_or_alias) {
  for (const OpDef* op : all_ops()) {
    if (equal_ignoring_case(op->name(), name_or_alias) ||
        (!op->alias().empty() && equal_ignoring_case(op->alias(), name_or_alias))) {
      return op;
    }
  }
  return invalid(fmt::format("unknown op '{}'; valid ops: {}", name_or_alias, valid_names()));
}

const OpDef* op_of(const Tensor& t) {
  if (is_view_op(t)) {
    return nullptr;
  }
  for (const OpDef* op : all_ops()) {
    if (op->name() == t.op) {
      return op;
    }
  }
  return nullptr;
}

}  // namespace cudabk
