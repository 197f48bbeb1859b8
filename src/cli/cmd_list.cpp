// cudabk list: what there is, and why something cannot run here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backend/fusion.h"
#include "backend/layouts.h"
#include "bench/shapes.h"
#include "bench/suites.h"
#include "bench/sweep.h"
#include "bench/table.h"
#include "bench/type_word.h"
#include "cli/command.h"
#include "core/units.h"
#include "reference/reference.h"

namespace cudabk::cli {
namespace {

using Json = nlohmann::ordered_json;

// A list as rows of named texts: printed as a table, or as JSON objects.
struct Listing {
  std::vector<std::string> fields;
  std::vector<std::vector<std::string>> rows;
};

Result<Listing> list_ops(CliContext&) {
  Listing list{{"op", "alias", "axes", "summary"}, {}};
  for (const OpDef* op : all_ops()) {
    std::vector<std::string> axes;
    for (const Axis& axis : op->axes()) {
      axes.push_back(axis.name);
    }
    list.rows.push_back({std::string(op->name()), std::string(op->alias()), fmt::format("{}", fmt::join(axes, ",")),
                         std::string(op->summary())});
  }
  return list;
}

Result<Listing> list_types(CliContext&) {
  Listing list{{"type", "block", "bytes", "bits/weight", "mul_mat", "encoder"}, {}};
  CUDABK_ASSIGN(const OpDef* mul_mat, find_op("mul_mat"));
  std::vector<std::string> weights;
  for (const Axis& axis : mul_mat->axes()) {
    if (axis.name == "type") {
      weights = axis.allowed;
    }
  }
  for (const DTypeTraits& type : kDTypes) {
    const bool weight = match_word("type", type.name, weights).ok();
    list.rows.push_back({type.name, fmt::format("{}", type.block_elements), fmt::format("{}", type.block_bytes),
                         fmt::format("{:.4g}", 8.0 * type.block_bytes / type.block_elements),
                         weight ? "yes" : fmt::format("no: {}", no_weight_reason(type.type)),
                         has_encoder(type.type) ? "yes" : "no"});
  }
  return list;
}

bool is_packed(const Graph& graph) {
  return std::any_of(graph.tensors().begin(), graph.tensors().end(),
                     [](const auto& t) { return t->layout == WeightLayout::kFrag; });
}

// Why this device runs no test case of the op with the family, in either layout of the weights; empty: it does. The
// reason that most cases give, of packed ones where the device can pack.
std::string reason_here(const OpDef& op, const Family& family, const DeviceInfo& device) {
  if (!family.applicable) {
    return "";
  }
  const Config config = complete_config(family);
  std::map<std::pair<bool, std::string>, int> reasons;  // packed, text -> cases
  for (const CaseParams& params : op.test_cases()) {
    for (const WeightLayout layout : {WeightLayout::kRaw, WeightLayout::kFrag}) {
      Graph graph;
      const Result<Tensor*> t = op.build(graph, params);
      if (!t.ok()) {
        break;
      }
      set_layouts(graph, device, layout);
      const Support support = family.applicable(op.problem(**t), config, device);
      if (support) {
        return "";
      }
      ++reasons[{is_packed(graph), support.reason}];
    }
  }
  const auto rank = [](const auto& entry) { return std::pair(entry.first.first, entry.second); };
  const auto best =
      std::max_element(reasons.begin(), reasons.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return best == reasons.end() ? "no case" : best->first.second;
}

Result<Listing> list_variants(CliContext& context) {
  CUDABK_ASSIGN(Device * device, context.device());
  Listing list{{"op", "family", "parameters", "runs on " + device->info().arch}, {}};
  for (const OpDef* op : all_ops()) {
    for (const Family& family : op->families()) {
      std::vector<std::string> params;
      for (const ConfigParam& param : family.params) {
        params.push_back(fmt::format("{}={} (of {})", param.name, param.fallback, fmt::join(param.values, " ")));
      }
      const std::string reason = reason_here(*op, family, device->info());
      list.rows.push_back({std::string(op->name()), family.name,
                           params.empty() ? "-" : fmt::format("{}", fmt::join(params, ", ")),
                           reason.empty() ? "yes" : "no: " + reason});
    }
  }
  return list;
}

Result<Listing> list_suites(CliContext&) {
  Listing list{{"suite", "summary"}, {}};
  for (const SuiteInfo& suite : suites()) {
    list.rows.push_back({std::string(suite.name), std::string(suite.summary)});
  }
  return list;
}

Result<Listing> list_shapes(CliContext&) {
  Listing list{{"model", "hidden", "ffn", "heads", "kv_heads", "head_dim", "layers", "matrices (m x k)"}, {}};
  CUDABK_ASSIGN(const std::vector<ModelShapes> models, model_shapes());
  for (const ModelShapes& model : models) {
    std::vector<std::string> matrices;
    for (const MatrixShape& shape : model.mul_mat) {
      matrices.push_back(fmt::format("{} {}x{}", shape.name, shape.m, shape.k));
    }
    list.rows.push_back({model.model, fmt::format("{}", model.hidden), fmt::format("{}", model.ffn),
                         fmt::format("{}", model.heads), fmt::format("{}", model.kv_heads),
                         fmt::format("{}", model.head_dim), fmt::format("{}", model.layers),
                         fmt::format("{}", fmt::join(matrices, ", "))});
  }
  return list;
}

Result<Listing> list_fusions(CliContext&) {
  Listing list{{"rule", "summary"}, {}};
  for (const FusionRule* rule : fusion_rules()) {
    list.rows.push_back({std::string(rule->name()), std::string(rule->summary())});
  }
  return list;
}

std::string as_table(const Listing& list) {
  std::vector<Column> columns;
  for (size_t i = 0; i < list.fields.size(); ++i) {
    const bool numbers =
        std::all_of(list.rows.begin(), list.rows.end(), [&](const auto& row) { return parse_double(row[i]).ok(); });
    columns.push_back({list.fields[i], numbers});
  }
  TextTable table(columns);
  for (const auto& row : list.rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      table.widen(i, row[i]);
    }
  }
  std::string text = table.header();
  for (const auto& row : list.rows) {
    text += table.row(row);
  }
  return text;
}

std::string as_json(const std::string& what, const Listing& list) {
  Json json;
  json["schema"] = "cudabk-list/1";
  json["list"] = what;
  json["entries"] = Json::array();
  for (const auto& row : list.rows) {
    Json entry;
    for (size_t i = 0; i < row.size(); ++i) {
      entry[list.fields[i]] = row[i];
    }
    json["entries"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

using Lister = Result<Listing> (*)(CliContext&);
constexpr std::pair<const char*, Lister> kLists[] = {
    {"ops", list_ops},       {"types", list_types},   {"variants", list_variants},
    {"suites", list_suites}, {"shapes", list_shapes}, {"fusions", list_fusions},
};

}  // namespace

void add_list_command(CLI::App& app, CliContext& context) {
  CLI::App* command = app.add_subcommand("list", "ops, types, variants, suites, shapes, fusions");
  const auto what = std::make_shared<std::string>();
  const auto json = std::make_shared<std::string>();
  command->add_option("what", *what, "ops, types, variants, suites, shapes or fusions")->required();
  add_output_option(*command, context, "--json", *json, "as a JSON document")->expected(0, 1)->default_str("-");
  command->footer(
      "types: elements and bytes of a block; encoder: test data of the type is made from f32, else of random blocks.\n"
      "variants: kernel families, their parameters as default (of all values), and why one cannot run here.\n"
      "Examples:\n  cudabk list ops\n  cudabk list variants --device host@sm_90a\n  cudabk list types --json -");
  set_handler(*command, context, [what, json](CliContext& ctx) -> Status {
    std::vector<std::string> names;
    for (const auto& entry : kLists) {
      names.emplace_back(entry.first);
    }
    CUDABK_ASSIGN(const std::string name, match_word("list", *what, names));
    for (const auto& [key, lister] : kLists) {
      if (name == key) {
        CUDABK_ASSIGN(const Listing list, lister(ctx));
        return json->empty() ? (ctx.print(as_table(list)), success()) : ctx.write_document(*json, as_json(name, list));
      }
    }
    return success();
  });
}

}  // namespace cudabk::cli
