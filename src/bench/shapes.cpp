#include "bench/shapes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/sweep.h"

namespace cudabk {
namespace {

constexpr std::string_view kSchema = "cudabk-shapes/1";

Result<int64_t> positive(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer() || found->get<int64_t>() <= 0) {
    return invalid(fmt::format("{} must be a whole number > 0", field));
  }
  return found->get<int64_t>();
}

Result<std::string> text(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_string()) {
    return invalid(fmt::format("{} must be a text", field));
  }
  return found->get<std::string>();
}

Result<ModelShapes> read(const nlohmann::json& doc) {
  ModelShapes shapes;
  CUDABK_ASSIGN(const std::string schema, text(doc, "schema"));
  if (schema != kSchema) {
    return invalid(fmt::format("schema is '{}', not '{}'", schema, kSchema));
  }
  CUDABK_ASSIGN(shapes.model, text(doc, "model"));
  CUDABK_ASSIGN(shapes.hidden, positive(doc, "hidden"));
  CUDABK_ASSIGN(shapes.ffn, positive(doc, "ffn"));
  CUDABK_ASSIGN(shapes.heads, positive(doc, "heads"));
  CUDABK_ASSIGN(shapes.kv_heads, positive(doc, "kv_heads"));
  CUDABK_ASSIGN(shapes.head_dim, positive(doc, "head_dim"));
  CUDABK_ASSIGN(shapes.layers, positive(doc, "layers"));
  CUDABK_ASSIGN(shapes.vocab, positive(doc, "vocab"));
  const auto rows = doc.find("mul_mat");
  if (rows == doc.end() || !rows->is_array() || rows->empty()) {
    return invalid("mul_mat must be a list");
  }
  for (const nlohmann::json& row : *rows) {
    MatrixShape shape;
    CUDABK_ASSIGN(shape.name, text(row, "name"));
    CUDABK_ASSIGN(shape.m, positive(row, "m"));
    CUDABK_ASSIGN(shape.k, positive(row, "k"));
    CUDABK_ASSIGN(shape.count, positive(row, "count"));
    shapes.mul_mat.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace

Result<ModelShapes> parse_shapes(std::string_view json, std::string_view source) {
  const nlohmann::json doc = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!doc.is_object()) {
    return invalid(fmt::format("{}: not a JSON object", source));
  }
  Result<ModelShapes> shapes = read(doc);
  if (!shapes.ok()) {
    return std::move(shapes).error().with_context(source);
  }
  return shapes;
}

Result<std::vector<ModelShapes>> model_shapes() {
  std::vector<ModelShapes> all;
  for (const EmbeddedText& file : embedded_shapes()) {
    CUDABK_ASSIGN(ModelShapes shapes, parse_shapes(file.text, file.name));
    all.push_back(std::move(shapes));
  }
  return all;
}

Result<ModelShapes> find_shapes(std::string_view model) {
  CUDABK_ASSIGN(const std::vector<ModelShapes> all, model_shapes());
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const ModelShapes& shapes : all) {
    names.push_back(shapes.model);
  }
  CUDABK_ASSIGN(const std::string name, match_word("model", model, names));
  for (const ModelShapes& shapes : all) {
    if (shapes.model == name) {
      return shapes;
    }
  }
  return internal_error("shape set vanished");
}

}  // namespace cudabk
