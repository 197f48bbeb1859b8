#include "bench/fusion_cases.h"

#include <array>

#include "bench/synthetic.h"
#include "ops/binary.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"

namespace cudabk {
namespace {

using Fires = FusionExpectation::Fires;
constexpr float kEps = 1e-6F;

struct Pattern {
  std::string_view name;
  FusionExpectation expected;
};

constexpr std::array kPatterns = {
    Pattern{"norm_mul", {"rms_norm_mul", Fires::kMust}},            // gain [cols]
    Pattern{"norm_mul_rows", {"rms_norm_mul", Fires::kMust}},       // gain [cols, rows]
    Pattern{"mul_norm", {"rms_norm_mul", Fires::kMust}},            // gain first, same shape
    Pattern{"norm_mul_column", {"rms_norm_mul", Fires::kMustNot}},  // gain [1]: one factor for all columns
    Pattern{"mul_norm_wide", {"rms_norm_mul", Fires::kMustNot}},    // the norm is repeated over more rows
    Pattern{"norm_twice", {"rms_norm_mul", Fires::kMustNot}},       // the norm is read again later
    Pattern{"norm_output", {"rms_norm_mul", Fires::kMustNot}},      // the norm is an output
    Pattern{"product_bias", {"mul_mat_add", Fires::kMay}},          // addend [m]
    Pattern{"product_residual", {"mul_mat_add", Fires::kMay}},      // addend [m, n]
    Pattern{"residual_product", {"mul_mat_add", Fires::kMay}},      // addend first
    Pattern{"product_columns", {"mul_mat_add", Fires::kMustNot}},   // addend [1, n]
    Pattern{"product_twice", {"mul_mat_add", Fires::kMustNot}},     // the product is read again later
    Pattern{"product_output", {"mul_mat_add", Fires::kMustNot}},    // the product is an output
};

Result<Tensor*> vector_leaf(Graph& graph, std::string name, Shape ne) {
  return graph.leaf(std::move(name), DType::f32, ne, Usage::kWeights);
}

Result<Tensor*> build_norm(Graph& graph, std::string_view pattern, int64_t cols, int64_t rows) {
  CUDABK_ASSIGN(Tensor * x, graph.leaf("x", DType::f32, {cols, rows, 1, 1}));
  CUDABK_ASSIGN(Tensor * norm, rms_norm(graph, x, kEps));
  if (pattern == "mul_norm" || pattern == "mul_norm_wide") {
    const int64_t repeats = pattern == "mul_norm" ? 1 : 2;
    CUDABK_ASSIGN(Tensor * gain, vector_leaf(graph, "gain", {cols, rows * repeats, 1, 1}));
    return mul(graph, gain, norm);
  }
  norm->is_output = pattern == "norm_output";
  const bool full = pattern == "norm_mul_rows";
  const int64_t width = pattern == "norm_mul_column" ? 1 : cols;
  CUDABK_ASSIGN(Tensor * gain, vector_leaf(graph, "gain", {width, full ? rows : 1, 1, 1}));
  CUDABK_ASSIGN(Tensor * y, mul(graph, norm, gain));
  return pattern == "norm_twice" ? add(graph, y, norm) : Result<Tensor*>(y);
}

Result<Tensor*> build_product(Graph& graph, std::string_view pattern, DType type, const Shape& size) {
  const auto [k, m, n, unused] = size;
  CUDABK_ASSIGN(Tensor * weights, graph.leaf("weights", type, {k, m, 1, 1}, Usage::kWeights));
  CUDABK_ASSIGN(Tensor * x, graph.leaf("x", DType::f32, {k, n, 1, 1}));
  CUDABK_ASSIGN(Tensor * product, mul_mat(graph, weights, x));
  product->is_output = pattern == "product_output";
  Shape addend_shape{m, 1, 1, 1};
  if (pattern == "product_residual" || pattern == "residual_product") {
    addend_shape = {m, n, 1, 1};
  } else if (pattern == "product_columns") {
    addend_shape = {1, n, 1, 1};
  }
  CUDABK_ASSIGN(Tensor * addend, graph.leaf("addend", DType::f32, addend_shape));
  if (pattern == "residual_product") {
    return add(graph, addend, product);
  }
  CUDABK_ASSIGN(Tensor * y, add(graph, product, addend));
  return pattern == "product_twice" ? mul(graph, y, product) : Result<Tensor*>(y);
}

class FusionTarget final : public SyntheticTarget {
 public:
  std::string_view name() const override { return "fusion"; }
  std::string_view summary() const override { return "graphs around the fusion rules, near misses included"; }
  std::span<const Axis> axes() const override {
    static const std::vector<Axis> kAxes = {{"pattern", "graph around a rule", patterns(), patterns(), patterns()},
                                            {"type", "weight type", {"q4_K"}, {"q4_K"}, weight_types()},
                                            {"cols", "columns of the norm, or k", {"512"}, {"512"}, {}},
                                            {"rows", "rows of the norm, or n", {"1", "33"}, {"1", "33"}, {}}};
    return kAxes;
  }

  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override {
    constexpr int64_t kWeightRows = 48;
    CUDABK_ASSIGN(const DType type, parse_dtype(params.get("type")));
    CUDABK_ASSIGN(const int64_t cols, params.get_int("cols"));
    CUDABK_ASSIGN(const int64_t rows, params.get_int("rows"));
    const std::string pattern = params.get("pattern");
    if (pattern.find("norm") != std::string::npos) {
      return build_norm(graph, pattern, cols, rows);
    }
    return build_product(graph, pattern, type, {cols, kWeightRows, rows, 1});
  }

  std::vector<CaseParams> test_cases() const override {
    std::vector<CaseParams> cases;
    for (const Pattern& pattern : kPatterns) {
      const bool product = pattern.expected.rule == "mul_mat_add";
      for (const std::string& type :
           product ? std::vector<std::string>{"q4_K", "q8_0", "f16"} : std::vector<std::string>{"q4_K"}) {
        for (const char* rows : {"1", "2", "33"}) {
          CaseParams params;
          params.set("pattern", std::string(pattern.name));
          params.set("type", type);
          params.set("cols", product ? "512" : "260");
          params.set("rows", rows);
          cases.push_back(std::move(params));
        }
      }
    }
    return cases;
  }

 private:
  static std::vector<std::string> patterns() {
    std::vector<std::string> names;
    names.reserve(kPatterns.size());
    for (const Pattern& pattern : kPatterns) {
      names.emplace_back(pattern.name);
    }
    return names;
  }
};

}  // namespace

const OpDef& fusion_target() {
  static const FusionTarget target;
  return target;
}

FusionExpectation fusion_expectation(std::string_view pattern) {
  for (const Pattern& known : kPatterns) {
    if (known.name == pattern) {
      return known.expected;
    }
  }
  return {};
}

}  // namespace cudabk
