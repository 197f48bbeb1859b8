#include "bench/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "backend/layouts.h"
#include "bench/layer.h"
#include "bench/shapes.h"
#include "bench/sweep.h"
#include "bench/type_word.h"
#include "core/pattern.h"
#include "core/units.h"
#include "graph/dtype.h"

namespace cudabk {
namespace {

constexpr size_t kMaxCases = 1000000;

std::vector<std::string> axis_names(std::span<const Axis> axes) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    names.push_back((axis.name.size() == 1 ? "-" : "--") + axis.name);
  }
  return names;
}

Result<std::vector<std::string>> axis_values(std::string_view target, const Axis& axis,
                                             const std::map<std::string, std::string>& given, bool emulated) {
  const auto typed = given.find(axis.name);
  if (typed == given.end()) {
    return emulated ? axis.host_values : axis.gpu_values;
  }
  std::vector<std::string> values;
  if (axis.allowed.empty()) {
    CUDABK_ASSIGN(const std::vector<int64_t> numbers, parse_sweep(typed->second));
    for (const int64_t v : numbers) {
      values.push_back(format_count(v));
    }
    return values;
  }
  CUDABK_ASSIGN(const std::vector<std::string> words, split_words(typed->second));
  const bool types = std::all_of(axis.allowed.begin(), axis.allowed.end(),
                                 [](const std::string& value) { return parse_dtype(value).ok(); });
  for (const std::string& word : words) {
    if (word == "all") {
      return axis.allowed;
    }
    CUDABK_ASSIGN(std::string value,
                  types ? match_type(target, word, axis.allowed) : match_word(axis.name, word, axis.allowed));
    values.push_back(std::move(value));
  }
  return values;
}

// The usual value of a side axis (one default, everywhere the same) stays out of the parameters, so that keys are short
// and do not change when an axis is added.
bool has_usual_value(const Axis& axis) {
  return axis.name != "type" && axis.gpu_values.size() == 1 && axis.gpu_values == axis.host_values;
}

bool is_implied(const Axis& axis, const std::string& value) {
  return has_usual_value(axis) && axis.gpu_values.front() == value;
}

// Axes in loop order, slowest first: the one that is a sweep over columns or tokens last.
std::vector<size_t> loop_order(std::span<const Axis> axes) {
  std::vector<size_t> order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return axes[i].name != "n" && axes[i].name != "tokens"; });
  return order;
}

Result<std::vector<std::regex>> compile(const std::vector<std::string>& patterns) {
  std::vector<std::regex> compiled;
  for (const std::string& pattern : patterns) {
    CUDABK_ASSIGN(std::regex expression, compile_pattern(pattern));
    compiled.push_back(std::move(expression));
  }
  return compiled;
}

// Axis values given for the case's shape set: every matrix of a model replaces m and k.
Result<std::vector<BenchCase>> op_shapes(const OpDef& op, const Selection& selection, bool emulated) {
  std::vector<BenchCase> cases;
  const auto add = [&](const std::map<std::string, std::string>& axes, const std::string& note) -> Status {
    CUDABK_ASSIGN(std::vector<CaseParams> all, expand_axes(op.name(), op.axes(), axes, emulated));
    for (CaseParams& params : all) {
      BenchCase c;
      c.op = &op;
      c.target = std::string(op.name());
      c.params = std::move(params);
      c.note = note;
      cases.push_back(std::move(c));
    }
    return success();
  };
  if (selection.shapes.empty()) {
    CUDABK_TRY(add(selection.axes, ""));
    return cases;
  }
  const bool layer = op.name() == "layer";
  if (!layer && op.name() != "mul_mat") {
    return invalid(fmt::format("--shapes applies to mulmat and layer, not to {}", op.name()));
  }
  CUDABK_ASSIGN(const ModelShapes model, find_shapes(selection.shapes));
  if (layer) {
    std::map<std::string, std::string> axes = selection.axes;
    axes["hidden"] = format_count(model.hidden);
    axes["ffn"] = format_count(model.ffn);
    CUDABK_TRY(add(axes, model.model));
    return cases;
  }
  for (const MatrixShape& shape : model.mul_mat) {
    std::map<std::string, std::string> axes = selection.axes;
    axes["m"] = format_count(shape.m);
    axes["k"] = format_count(shape.k);
    CUDABK_TRY(add(axes, shape.name));
  }
  return cases;
}

// A key is measured once: matrices of a model that have one shape share a row, which names them all.
void add_once(BenchCase c, const std::string& key, std::vector<BenchCase>& cases, std::map<std::string, size_t>& seen) {
  const auto [known, is_fresh] = seen.try_emplace(key, cases.size());
  if (is_fresh) {
    cases.push_back(std::move(c));
  } else if (std::string& note = cases[known->second].note; note.find(c.note) == std::string::npos) {
    note += "+" + c.note;
  }
}

// The default configuration; with `full`, also every one that differs from it in one parameter.
std::vector<Config> configs_of(const Family& family, bool full) {
  std::vector<Config> configs{complete_config(family)};
  for (const ConfigParam& param : family.params) {
    for (const int value : full ? param.values : std::vector<int>{}) {
      if (value != param.fallback) {
        configs.push_back(configs.front());
        configs.back()[param.name] = value;
      }
    }
  }
  return configs;
}

Status check_builds(const BenchCase& c) {
  Graph graph;
  const Result<Tensor*> built = c.op->build(graph, c.params);
  if (!built.ok()) {
    return Error(built.error()).with_context(fmt::format("{} {}", c.target, c.params.text()));
  }
  return success();
}

}  // namespace

std::string Variant::text() const {
  if (family.empty()) {
    return "auto";
  }
  std::string text = family;
  char separator = ':';
  for (const auto& [name, value] : config) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  }
  return text;
}

std::string usual_value(std::string_view target, std::string_view axis) {
  const Result<const OpDef*> found = find_op(target);
  const OpDef& op = found.ok() ? **found : layer_target();
  if (op.name() != target) {
    return "";
  }
  const auto place = std::find_if(op.axes().begin(), op.axes().end(), [&](const Axis& a) { return a.name == axis; });
  return place != op.axes().end() && has_usual_value(*place) ? place->gpu_values.front() : "";
}

std::string BenchCase::key() const {
  return fmt::format("{} {} variant={} launch={} fusion={} cache={}", target, params.text(), variant.text(),
                     launch == LaunchMode::kGraph ? "graph" : "eager", fusion ? "on" : "off", cold ? "cold" : "hot");
}

Result<std::vector<CaseParams>> expand_axes(std::string_view target, std::span<const Axis> axes,
                                            const std::map<std::string, std::string>& given, bool emulated) {
  for (const auto& entry : given) {
    if (std::none_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == entry.first; })) {
      return invalid(fmt::format("{} has no axis {}{}; its axes: {}", target, entry.first.size() == 1 ? "-" : "--",
                                 entry.first, fmt::join(axis_names(axes), ", ")));
    }
  }
  std::vector<std::vector<std::string>> values;
  size_t count = 1;
  for (const Axis& axis : axes) {
    Result<std::vector<std::string>> list = axis_values(target, axis, given, emulated);
    if (!list.ok()) {
      return std::move(list).error().with_context((axis.name.size() == 1 ? "-" : "--") + axis.name);
    }
    count *= std::max<size_t>(list->size(), 1);
    if (count > kMaxCases) {
      return invalid(fmt::format("more than {} cases", kMaxCases));
    }
    values.push_back(std::move(list).value());
  }
  const std::vector<size_t> order = loop_order(axes);
  std::vector<size_t> position(axes.size(), 0);
  std::vector<CaseParams> cases;
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      const size_t length = std::max<size_t>(values[*axis].size(), 1);
      position[*axis] = rest % length;
      rest /= length;
    }
    CaseParams params;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (!values[a].empty() && !is_implied(axes[a], values[a][position[a]])) {
        params.set(axes[a].name, values[a][position[a]]);
      }
    }
    cases.push_back(std::move(params));
  }
  return cases;
}

namespace {

constexpr const char* kVariantForms =
    " (written 'FAMILY:rows=1,warps=4', or as tables print it, 'FAMILY rows=1 warps=4')";

// "rows=1,warps=4" or "rows=1 warps=4".
Result<std::vector<std::string>> settings_of(std::string_view text) {
  std::vector<std::string> settings;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    if (space > 0) {
      CUDABK_ASSIGN(const std::vector<std::string> words, split_words(text.substr(0, space)));
      settings.insert(settings.end(), words.begin(), words.end());
    }
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return settings;
}

}  // namespace

Result<Variant> parse_variant(std::string_view text, const OpDef& op) {
  if (text == "auto" || text.empty()) {
    return Variant{};
  }
  std::vector<std::string> names{"auto", "all", "full"};
  for (const Family& family : op.families()) {
    names.push_back(family.name);
  }
  const size_t end = text.find_first_of(": ");
  Result<std::string> matched = match_word("variant", text.substr(0, end), names);
  if (!matched.ok()) {
    return invalid(matched.error().message + kVariantForms);
  }
  const std::string name = std::move(matched).value();
  const Family* family = find_family(op.families(), name);
  if (family == nullptr) {
    return invalid(fmt::format("variant '{}' takes no parameters", text));
  }
  Variant variant{name, complete_config(*family)};
  if (end == std::string_view::npos) {
    return variant;
  }
  CUDABK_ASSIGN(const std::vector<std::string> settings, settings_of(text.substr(end + 1)));
  for (const std::string& setting : settings) {
    const size_t equals = std::min(setting.find('='), setting.size());
    const ConfigParam* param = find_param(*family, setting.substr(0, equals));
    if (param == nullptr) {
      std::vector<std::string> params;
      for (const ConfigParam& p : family->params) {
        params.push_back(p.name);
      }
      return invalid(fmt::format("{} has no parameter '{}'; valid: {}{}", name, setting.substr(0, equals),
                                 fmt::join(params, ", "), kVariantForms));
    }
    const Result<int64_t> value = parse_int(equals < setting.size() ? setting.substr(equals + 1) : "");
    if (!value.ok() || std::find(param->values.begin(), param->values.end(), *value) == param->values.end()) {
      return invalid(fmt::format("{}: '{}' is not a value of {}; valid: {}", name, setting, param->name,
                                 fmt::join(param->values, ", ")));
    }
    variant.config[param->name] = static_cast<int>(*value);
  }
  return variant;
}

PlanOptions layout_options(const BenchCase& c, const Profile* profile) {
  static const Profile kAllRaw;
  PlanOptions options;
  options.profile = profile != nullptr ? profile : &kAllRaw;
  options.forced_family = c.variant.family;
  options.forced_config = c.variant.config;
  return options;
}

Result<std::vector<Variant>> variants_for(const BenchCase& c, const std::string& text, const DeviceInfo& device,
                                          const Profile* profile) {
  if (text == "auto" || text.empty()) {
    return std::vector<Variant>{{}};
  }
  if (text != "all" && text != "full") {
    CUDABK_ASSIGN(Variant variant, parse_variant(text, *c.op));
    return std::vector<Variant>{std::move(variant)};
  }
  Graph graph;
  CUDABK_ASSIGN(const Tensor* t, c.op->build(graph, c.params));
  std::vector<Variant> variants;
  for (const Family& family : c.op->families()) {
    for (const Config& config : configs_of(family, text == "full")) {
      BenchCase own = c;
      own.variant = {family.name, config};
      choose_layouts(graph, device, layout_options(own, profile));
      if (!family.applicable || family.applicable(c.op->problem(*t), config, device)) {
        variants.push_back(std::move(own.variant));
      }
    }
  }
  if (variants.empty()) {
    variants.emplace_back();
  }
  return variants;
}

Result<std::vector<BenchCase>> select_cases(const OpDef& op, const Selection& selection, const DeviceInfo& device,
                                            const Profile* profile) {
  CUDABK_ASSIGN(const std::vector<BenchCase> shapes, op_shapes(op, selection, device.emulated));
  std::vector<BenchCase> cases;
  for (const BenchCase& shape : shapes) {
    CUDABK_TRY(check_builds(shape));
    CUDABK_ASSIGN(const std::vector<Variant> variants, variants_for(shape, selection.variant, device, profile));
    for (const Variant& variant : variants) {
      cases.push_back(shape);
      cases.back().variant = variant;
    }
  }
  return with_modes(cases, selection);
}

Result<std::vector<BenchCase>> with_modes(const std::vector<BenchCase>& cases, const Selection& selection) {
  CUDABK_ASSIGN(const std::vector<std::regex> filters, compile(selection.filters));
  CUDABK_ASSIGN(const std::vector<std::regex> excludes, compile(selection.excludes));
  const auto wanted = [](Mode mode, bool first) { return mode == Mode::kBoth || (mode == Mode::kFirst) == first; };
  const auto matches = [](const std::string& key) {
    return [&key](const std::regex& r) { return std::regex_search(key, r); };
  };
  std::vector<BenchCase> selected;
  std::map<std::string, size_t> seen;
  std::string first_key;
  for (const BenchCase& base : cases) {
    for (int bits = 0; bits < 8; ++bits) {
      BenchCase c = base;
      c.launch = (bits & 1) == 0 ? LaunchMode::kGraph : LaunchMode::kEager;
      c.fusion = (bits & 2) == 0;
      c.cold = (bits & 4) == 0;
      if (!wanted(selection.launch, c.launch == LaunchMode::kGraph) || !wanted(selection.fusion, c.fusion) ||
          !wanted(selection.cache, c.cold)) {
        continue;
      }
      const std::string key = c.key();
      first_key = first_key.empty() ? key : first_key;
      if (std::all_of(filters.begin(), filters.end(), matches(key)) &&
          std::none_of(excludes.begin(), excludes.end(), matches(key))) {
        add_once(std::move(c), key, selected, seen);
      }
    }
  }
  if (selected.empty()) {
    return Error{ErrorKind::kNothing,
                 fmt::format("nothing selected: none of {} cases passes --filter/--exclude; they look like '{}'",
                             cases.size(), first_key)};
  }
  return selected;
}

}  // namespace cudabk
