#include "ops/mul_mat.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/slices.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat_cases.h"
#include "ops/mul_mat_families.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

bool is_weight_type(DType t) { return is_float(t) || has_device_format(t); }

class MulMat final : public OpDef {
 public:
  std::string_view name() const override { return "mul_mat"; }
  std::string_view alias() const override { return "mulmat"; }
  std::string_view summary() const override { return "matrix product of any weight type with f32 activations"; }

  Support supports(const Tensor& t, const DeviceInfo&) const override {
    const Tensor& w = *t.src[0];
    const Tensor& x = *t.src[1];
    if (!is_weight_type(w.type)) {
      return Support::no(fmt::format("weights of type {} have no kernel", dtype_name(w.type)));
    }
    const bool f16_pair = x.type == DType::f16 && w.type == DType::f16;
    if (x.type != DType::f32 && !f16_pair) {
      return Support::no(fmt::format("activations must be f32 (f16 with f16 weights), not {}", dtype_name(x.type)));
    }
    if (w.nb[0] != block_bytes(w.type) || x.nb[0] != block_bytes(x.type)) {
      return Support::no("rows must be dense");
    }
    if (t.type != DType::f32 || !is_contiguous(t)) {
      return Support::no("the result must be dense f32");
    }
    return {};
  }

  Cost cost(const Tensor& t) const override {
    const Tensor& w = *t.src[0];
    const Tensor& x = *t.src[1];
    const double weight_bytes = static_cast<double>(row_bytes(w.type, w.ne[0])) * static_cast<double>(row_count(w));
    const double other =
        static_cast<double>(element_count(x)) * block_bytes(x.type) + static_cast<double>(element_count(t)) * 4;
    return {weight_bytes + other, 2.0 * static_cast<double>(w.ne[0]) * static_cast<double>(element_count(t)),
            weight_bytes};
  }

  Result<std::vector<Launch>> lower(const Tensor& t, LowerContext& ctx) const override {
    return lower_mul_mat(t, nullptr, t, ctx);
  }

  std::span<const Family> families() const override { return mul_mat_families(); }
  Problem problem(const Tensor& t) const override { return mul_mat_problem(t); }
  std::span<const Axis> axes() const override { return mul_mat_axes(); }
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override {
    return build_mul_mat_case(graph, params);
  }
  std::vector<CaseParams> test_cases() const override { return mul_mat_test_cases(); }
  double tolerance(const Tensor&) const override { return 5e-4; }
};

}  // namespace

const OpDef& mul_mat_op() {
  static const MulMat op;
  return op;
}

Result<Tensor*> mul_mat(Graph& graph, Tensor* weights, Tensor* x, MulMatParams params) {
  const auto fail = [&](std::string_view why) {
    return invalid(fmt::format("mul_mat: {}: weights {}, activations {}", why, describe(*weights), describe(*x)));
  };
  if (weights->ne[0] != x->ne[0]) {
    return fail(fmt::format("row lengths {} and {} differ", weights->ne[0], x->ne[0]));
  }
  if (weights->ne[0] != 0 && is_transposed(*weights)) {
    return fail("the weights are transposed");
  }
  for (const int i : {2, 3}) {
    if (weights->ne[i] == 0 || x->ne[i] % weights->ne[i] != 0) {
      return fail(fmt::format("dim {} of the activations ({}) is not a multiple of the weights' ({})", i, x->ne[i],
                              weights->ne[i]));
    }
  }
  return graph.node("mul_mat", OpParams::of(params), DType::f32, {weights->ne[1], x->ne[1], x->ne[2], x->ne[3]},
                    {weights, x});
}

Result<std::vector<Launch>> lower_mul_mat(const Tensor& product, const Tensor* addend, const Tensor& dst,
                                          LowerContext& ctx) {
  if (product.src[0]->ne[0] == 0) {  // an empty sum
    if (addend != nullptr) {
      return unsupported("the product is an empty sum");
    }
    return Launches{{"zero", FillWork{ctx.data(dst), 0, byte_size(dst)}}};
  }
  CUDABK_ASSIGN(Choice choice, ctx.choose(mul_mat_op(), mul_mat_problem(product)));
  const Product p{*product.src[0], *product.src[1], addend, dst, product.params.as<MulMatParams>(), choice};
  if (choice.family == "mmvq") {
    return lower_mmvq(p, ctx);
  }
  if (choice.family == "mmvf") {
    return lower_mmvf(p, ctx);
  }
  if (choice.family == "mmsf") {
    return lower_mmsf(p, ctx);
  }
  if (choice.family == "mmsf_ring") {
    return lower_mmsf_ring(p, ctx);
  }
  if (choice.family == "mmsf_group") {
    return lower_mmsf_group(p, ctx);
  }
  if (choice.family == "mmq" || choice.family == "mmf") {
    return lower_tile(p, ctx);
  }
  if (choice.family == "frag_vector") {
    return lower_frag_vector(p, ctx);
  }
  if (choice.family == "frag_ring") {
    return lower_frag_ring(p, ctx);
  }
  if (choice.family == "frag_wide") {
    return lower_frag_wide(p, ctx);
  }
  if (choice.family == "frag_direct") {
    return lower_frag_direct(p, ctx);
  }
  if (choice.family == "frag_tile") {
    return lower_frag_tile(p, ctx);
  }
  if (addend != nullptr) {
    return unsupported(fmt::format("{} has no epilogue", choice.family));
  }
  return lower_gemm(p, ctx);
}

// ---- shared pieces ----

std::string type_text(DType type) { return fmt::format("DType::{}", dtype_name(type)); }

bool weights_are_constant(const Tensor& weights) {
  const Tensor& root = weights.root();
  const bool in_place = root.layout == WeightLayout::kRaw || frag_view(weights);  // else unpacked by the plan
  return in_place && root.usage == Usage::kWeights && root.op == kOpNone;
}

uint32_t grid_extent(int64_t wanted) { return static_cast<uint32_t>(std::min(wanted, kMaxGridYZ)); }

bool rows_aligned(const Tensor& t, int64_t bytes) {
  return t.view_offset % bytes == 0 &&
         std::all_of(t.nb.begin() + 1, t.nb.end(), [&](int64_t nb) { return nb % bytes == 0; });
}

}  // namespace cudabk
