#include "backend/fusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "ops/mul_mat.h"
#include "ops/rms_norm.h"

namespace cudabk {
namespace {

const Tensor& node_at(const FusionInput& in, size_t i) { return *in.graph.nodes()[i]; }

// The operand of the binary node `t` that is not `known`.
const Tensor& other_operand(const Tensor& t, const Tensor& known) { return *t.src[t.src[0] == &known ? 1 : 0]; }

FusionMatch near_miss(std::string why) { return {0, std::move(why)}; }

// y = rms_norm(x) * gain: the gain is applied while the row is in registers.
class RmsNormMul final : public FusionRule {
 public:
  std::string_view name() const override { return "rms_norm_mul"; }
  std::string_view summary() const override { return "rms_norm, mul: the gain is applied inside the norm"; }

  FusionMatch match(const FusionInput& in, size_t first) const override {
    static constexpr std::array<std::string_view, 2> kOps = {"rms_norm", "mul"};
    if (const std::string why = chain_mismatch(in, first, kOps); !why.empty()) {
      return why == "-" ? FusionMatch{} : near_miss(why);
    }
    const Tensor& norm = node_at(in, first);
    const Tensor& mul = node_at(in, first + 1);
    const Tensor& gain = other_operand(mul, norm);
    if (mul.src[1] == &norm && !same_shape(gain, norm)) {
      return near_miss(fmt::format("the norm is the broadcast operand: {} times {}", describe(gain), describe(norm)));
    }
    if (const Support fits = supports_rms_norm_gain(*norm.src[0], gain, mul); !fits) {
      return near_miss(fits.reason);
    }
    return {2, ""};
  }

  Result<std::vector<Launch>> lower(const FusionInput& in, size_t first, LowerContext& ctx) const override {
    const Tensor& norm = node_at(in, first);
    const Tensor& mul = node_at(in, first + 1);
    CUDABK_ASSIGN(Launch launch, lower_rms_norm(*norm.src[0], &other_operand(mul, norm), mul, rms_norm_eps(norm), ctx));
    return std::vector<Launch>{std::move(launch)};
  }
};

// y = weights * x + b: bias or residual is added in the product's epilogue.
class MulMatAdd final : public FusionRule {
 public:
  std::string_view name() const override { return "mul_mat_add"; }
  std::string_view summary() const override { return "mul_mat, add: bias or residual is added in the epilogue"; }

  FusionMatch match(const FusionInput& in, size_t first) const override {
    static constexpr std::array<std::string_view, 2> kOps = {"mul_mat", "add"};
    if (const std::string why = chain_mismatch(in, first, kOps); !why.empty()) {
      return why == "-" ? FusionMatch{} : near_miss(why);
    }
    const Tensor& product = node_at(in, first);
    const Tensor& add = node_at(in, first + 1);
    const Tensor& addend = other_operand(add, product);
    if (add.type != DType::f32 || addend.type != DType::f32) {
      return near_miss(fmt::format("addend and sum must be f32: {}, {}", describe(addend), describe(add)));
    }
    const bool bias = addend.ne[0] == product.ne[0] && row_count(addend) == 1;
    if (!same_shape(addend, product) && !bias) {
      return near_miss(
          fmt::format("the addend {} is neither a row of {} nor of its shape", describe(addend), describe(product)));
    }
    if (!is_contiguous(addend) || !is_contiguous(add)) {
      return near_miss(fmt::format("addend and sum must be dense: {}, {}", describe(addend), describe(add)));
    }
    return {2, ""};
  }

  Result<std::vector<Launch>> lower(const FusionInput& in, size_t first, LowerContext& ctx) const override {
    const Tensor& product = node_at(in, first);
    const Tensor& add = node_at(in, first + 1);
    return lower_mul_mat(product, &other_operand(add, product), add, ctx);
  }
};

}  // namespace

std::span<const FusionRule* const> fusion_rules() {
  static const RmsNormMul rms_norm_mul;
  static const MulMatAdd mul_mat_add;
  static const std::array<const FusionRule*, 2> kRules = {&rms_norm_mul, &mul_mat_add};
  return kRules;
}

Status check_fusion_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const FusionRule* rule : fusion_rules()) {
    if (rule->name() == name) {
      return success();
    }
    names.push_back(rule->name());
  }
  return invalid(fmt::format("unknown fusion rule '{}'; valid rules: {}", name, fmt::join(names, ", ")));
}

std::string chain_mismatch(const FusionInput& in, size_t first, std::span<const std::string_view> ops) {
  const auto& nodes = in.graph.nodes();
  if (first + ops.size() > nodes.size()) {
    return "-";
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    if (nodes[first + i]->op != ops[i]) {
      return "-";
    }
  }
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const Tensor& t = *nodes[first + i];
    const Tensor& next = *nodes[first + i + 1];
    if (next.src[0] != &t && next.src[1] != &t) {
      return fmt::format("{} does not read {}", next.name, t.name);
    }
    if (in.uses[t.id] != 1) {
      return fmt::format("{} has {} readers", t.name, in.uses[t.id]);
    }
    if (t.is_output) {
      return fmt::format("{} is an output", t.name);
    }
    if (t.view_src != nullptr) {
      return fmt::format("{} writes into {}", t.name, t.view_src->name);
    }
    if (!same_shape(t, next)) {
      return fmt::format("{} has shape {}, {} has {}", t.name, shape_text(t.ne), next.name, shape_text(next.ne));
    }
  }
  return "";
}

}  // namespace cudabk
