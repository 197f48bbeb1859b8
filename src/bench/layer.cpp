#include "bench/layer.h"

#include "bench/synthetic.h"
#include "ops/binary.h"
#include "ops/glu.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"

namespace cudabk {
namespace {

constexpr float kEps = 1e-5F;  // as in the models of tuning/shapes

class LayerTarget final : public SyntheticTarget {
 public:
  std::string_view name() const override { return "layer"; }
  std::string_view summary() const override {
    return "gated feed-forward network: norm, gate, up, swiglu, down, residual";
  }
  std::span<const Axis> axes() const override {
    static const std::vector<Axis> kAxes = {{"type", "type of the three weights", {"q4_K"}, {"q4_K"}, weight_types()},
                                            {"hidden", "width of the residual stream", {"4096"}, {"256"}, {}},
                                            {"ffn", "width of the feed-forward network", {"14336"}, {"512"}, {}},
                                            {"tokens", "columns", {"1", "8", "512"}, {"1", "8"}, {}}};
    return kAxes;
  }

  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override {
    CUDABK_ASSIGN(const DType type, parse_dtype(params.get("type")));
    CUDABK_ASSIGN(const int64_t hidden, params.get_int("hidden"));
    CUDABK_ASSIGN(const int64_t ffn, params.get_int("ffn"));
    CUDABK_ASSIGN(const int64_t tokens, params.get_int("tokens"));
    CUDABK_ASSIGN(Tensor * x, graph.leaf("x", DType::f32, {hidden, tokens, 1, 1}));
    return build_ffn(graph, x, type, ffn);
  }

  std::vector<CaseParams> test_cases() const override {
    std::vector<CaseParams> cases;
    for (const std::string& type : weight_types()) {
      for (const char* tokens : {"1", "3", "17"}) {
        CaseParams params;
        params.set("type", type);
        params.set("hidden", "256");
        params.set("ffn", "512");
        params.set("tokens", tokens);
        cases.push_back(std::move(params));
      }
    }
    return cases;
  }
};

}  // namespace

const OpDef& layer_target() {
  static const LayerTarget target;
  return target;
}

Result<Tensor*> build_ffn(Graph& graph, Tensor* x, DType type, int64_t ffn) {
  const int64_t hidden = x->ne[0];
  CUDABK_ASSIGN(Tensor * gain, graph.leaf("norm_gain", DType::f32, {hidden, 1, 1, 1}, Usage::kWeights));
  CUDABK_ASSIGN(Tensor * gate_weight, graph.leaf("ffn_gate", type, {hidden, ffn, 1, 1}, Usage::kWeights));
  CUDABK_ASSIGN(Tensor * up_weight, graph.leaf("ffn_up", type, {hidden, ffn, 1, 1}, Usage::kWeights));
  CUDABK_ASSIGN(Tensor * down_weight, graph.leaf("ffn_down", type, {ffn, hidden, 1, 1}, Usage::kWeights));
  CUDABK_ASSIGN(Tensor * norm, rms_norm(graph, x, kEps));
  CUDABK_ASSIGN(Tensor * h, mul(graph, norm, gain));
  CUDABK_ASSIGN(Tensor * gate, mul_mat(graph, gate_weight, h));
  CUDABK_ASSIGN(Tensor * up, mul_mat(graph, up_weight, h));
  CUDABK_ASSIGN(Tensor * act, swiglu_split(graph, gate, up));
  CUDABK_ASSIGN(Tensor * down, mul_mat(graph, down_weight, act));
  return add(graph, down, x);
}

}  // namespace cudabk
