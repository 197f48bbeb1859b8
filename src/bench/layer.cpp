#include "bench/layer.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/glu.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"

namespace cudabk {
namespace {

constexpr float kEps = 1e-5F;  // as in the models of tuning/shapes

class LayerTarget final : public OpDef {
 public:
  std::string_view name() const override { return "layer"; }
  std::string_view summary() const override {
    return "gated feed-forward network: norm, gate, up, swiglu, down, residual";
  }

  Support supports(const Tensor& t, const DeviceInfo& device) const override {
    for (const Tensor* node : nodes_of(t)) {
      if (const OpDef* op = op_of(*node)) {
        if (const Support s = op->supports(*node, device); !s) {
          return Support::no(std::string(op->name()) + ": " + s.reason);
        }
      }
    }
    return {};
  }

  // Weights, input and output once; what lies between may stay on the chip.
  Cost cost(const Tensor& t) const override {
    Cost total;
    std::vector<const Tensor*> leaves;
    for (const Tensor* node : nodes_of(t)) {
      if (const OpDef* op = op_of(*node)) {
        const Cost c = op->cost(*node);
        total.operations += c.operations;
      }
      for (const Tensor* src : node->src) {
        const Tensor& root = src->root();
        if (root.op == kOpNone && std::find(leaves.begin(), leaves.end(), &root) == leaves.end()) {
          leaves.push_back(&root);
          total.bytes += static_cast<double>(byte_size(root));
          total.weight_bytes += root.usage == Usage::kWeights ? static_cast<double>(byte_size(root)) : 0;
        }
      }
    }
    total.bytes += static_cast<double>(byte_size(t));
    return total;
  }

  // A layer is measured node by node; it has no launches of its own.
  Result<std::vector<Launch>> lower(const Tensor&, LowerContext&) const override {
    return internal_error("layer: a synthetic target is never a node of a graph");
  }

  std::span<const Family> families() const override { return mul_mat_op().families(); }
  // That of its gate product: what forced variants are checked against.
  Problem problem(const Tensor& t) const override {
    for (const Tensor* node : nodes_of(t)) {
      if (node->op == "mul_mat") {
        return mul_mat_op().problem(*node);
      }
    }
    return {};
  }
  std::span<const Axis> axes() const override {
    static const std::vector<Axis> kAxes = make_axes();
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

  std::vector<CaseParams> test_cases() const override { return {}; }
  double tolerance(const Tensor& t) const override { return mul_mat_op().tolerance(*t.src[0]); }

 private:
  static const OpDef& mul_mat_op() { return **find_op("mul_mat"); }

  static std::vector<Axis> make_axes() {
    std::vector<std::string> types;
    for (const Axis& axis : mul_mat_op().axes()) {
      if (axis.name == "type") {
        types = axis.allowed;
      }
    }
    return {{"type", "type of the three weights", {"q4_K"}, {"q4_K"}, types},
            {"hidden", "width of the residual stream", {"4096"}, {"256"}, {}},
            {"ffn", "width of the feed-forward network", {"14336"}, {"512"}, {}},
            {"tokens", "columns", {"1", "8", "512"}, {"1", "8"}, {}}};
  }

  // Every node that `t` depends on, sources first.
  static void visit(const Tensor& t, std::vector<const Tensor*>& seen) {
    if (t.op == kOpNone || std::find(seen.begin(), seen.end(), &t) != seen.end()) {
      return;
    }
    for (const Tensor* src : t.src) {
      visit(*src, seen);
    }
    seen.push_back(&t);
  }
  static std::vector<const Tensor*> nodes_of(const Tensor& t) {
    std::vector<const Tensor*> nodes;
    visit(t, nodes);
    return nodes;
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
