#include "ops/glu.h"

#include <fmt/format.h>

#include "glu/args.h"
#include "ops/cases.h"
#include "ops/op_def.h"
#include "ops/row_grid.h"

namespace cudabk {
namespace {

constexpr std::string_view kName = "swiglu";

struct GluParams {
  int32_t swapped = 0;  // one-tensor form: the gate comes first
};

Status check_type(const Tensor& a) {
  if (a.type != DType::f32 && a.type != DType::f16) {
    return invalid(fmt::format("swiglu: a is {}, only f32 and f16 are valid", describe(a)));
  }
  return success();
}

Support check_rows(const Tensor& t) {
  if (t.type != DType::f32 && t.type != DType::f16) {
    return Support::no(fmt::format("{} is neither f32 nor f16", describe(t)));
  }
  if (!is_empty(t) && (!has_contiguous_rows(t) || !has_element_strides(t))) {
    return Support::no(fmt::format("{} has rows that are not dense", describe(t)));
  }
  return {};
}

class SwigluOp final : public OpDef {
 public:
  std::string_view name() const override { return kName; }
  std::string_view summary() const override { return "silu(x) * g, of two tensors or the halves of one"; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    for (const Tensor* s : y.src) {
      if (const Support rows = check_rows(*s); !rows) {
        return rows;
      }
      if (s->type != y.type) {
        return Support::no(fmt::format("{} and the result {} differ in type", describe(*s), describe(y)));
      }
    }
    return check_rows(y);
  }
  // exp, add, divide, multiply.
  Cost cost(const Tensor& y) const override { return element_wise_cost(y, 4); }
  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override;
  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;
  double tolerance(const Tensor& y) const override { return 1e-7 + rounding_nmse(y.type); }
};

Result<std::vector<Launch>> SwigluOp::lower(const Tensor& y, LowerContext& ctx) const {
  std::vector<Launch> launches;
  if (is_empty(y)) {
    return launches;
  }
  const bool split = y.src.size() > 1;
  const Tensor &x = *y.src[0], &g = split ? *y.src[1] : *y.src[0];
  std::vector<LoopDim> dims;
  for (int i = 0; i < 4; ++i) {
    dims.push_back({y.ne[i], {element_stride(x, i), element_stride(g, i), element_stride(y, i)}, y.ne[i]});
  }
  dims[0].stride = {1, 1, 1};
  dims = merge_dims(dims);

  int vec = y.type == DType::f16 ? 8 : 4;  // packs of 16 bytes
  const bool aligned = dims[0].extent % vec == 0 && (split || y.ne[0] % vec == 0) &&
                       is_vector_aligned(dims, 0, x, vec) && is_vector_aligned(dims, 1, g, vec) &&
                       is_vector_aligned(dims, 2, y, vec);
  vec = aligned ? vec : 1;
  CUDABK_ASSIGN(const RowLaunch rows, plan_rows(dims, vec, ctx.device()));

  KernelCall<GluArgs> call(
      {"glu/glu.h",
       fmt::format("glu<Silu, {}, {}, {}, {}>", y.type == DType::f16 ? "f16" : "float", kRowThreads, vec, rows.packs)},
      rows.blocks, {kRowThreads, 1, 1});
  call.args.grid = rows.grid;
  call.args.x_strides = row_strides(dims, 0);
  call.args.g_strides = row_strides(dims, 1);
  call.args.y_strides = row_strides(dims, 2);
  const int64_t half = y.ne[0] * block_bytes(y.type);
  const bool swapped = y.params.as<GluParams>().swapped != 0;
  call.bind(call.args.x, ctx.data(x) + (!split && swapped ? half : 0));
  call.bind(call.args.g, ctx.data(g) + (!split && !swapped ? half : 0));
  call.bind(call.args.y, ctx.data(y));
  launches.push_back(call.launch(std::string(kName)));
  return launches;
}

std::span<const Axis> SwigluOp::axes() const {
  static const std::vector<Axis> axes{
      {"type", "type of all tensors", {"f32"}, {"f32"}, {"f32", "f16"}},
      {"cols", "elements of a row of the result", {"14336"}, {"1024"}, {}},
      {"rows", "rows", {"1", "512", "4096"}, {"1", "64"}, {}},
      {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
      {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
      {"form", "operands", {"split"}, {"split"}, {"split", "single", "swapped"}},
      {"odd", "1: rows of the single operand have one element more", {"0"}, {"0"}, {}},
      {"layout", "memory layout of the operands", {"dense"}, {"dense"}, layout_words()},
  };
  return axes;
}

Result<Tensor*> SwigluOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const DType type, parse_dtype(get_or(params, "type", "f32")));
  CUDABK_ASSIGN(Shape ne, shape_of(params));
  CUDABK_ASSIGN(const int64_t odd, get_int_or(params, "odd", 0));
  const std::string layout = get_or(params, "layout", "dense"), form = get_or(params, "form", "split");
  if (form == "split") {
    CUDABK_ASSIGN(Tensor * a, make_operand(graph, "a", type, ne, layout));
    // The gate's rows have another pitch where rows may have one.
    CUDABK_ASSIGN(Tensor * b, make_operand(graph, "b", type, ne, layout == "offset" ? "half" : layout));
    return swiglu_split(graph, a, b);
  }
  ne[0] = 2 * ne[0] + (odd != 0 ? 1 : 0);
  CUDABK_ASSIGN(Tensor * a, make_operand(graph, "a", type, ne, layout));
  return swiglu(graph, a, form == "swapped");
}

std::vector<CaseParams> SwigluOp::test_cases() const {
  std::vector<CaseParams> cases;
  for (const std::string type : {"type=f32 ", "type=f16 "}) {
    for (const std::string form : {"form=split ", "form=single ", "form=swapped "}) {
      for (const std::string_view shape : {
               "cols=64 rows=2 dim2=2 dim3=2",
               "cols=64 rows=2 dim2=2 dim3=2 layout=window",
               "cols=64 rows=3 dim2=2 layout=half",
               "cols=5 rows=7 dim2=11 dim3=13",
               "cols=5 rows=7 dim2=3 layout=offset",
               "cols=48 rows=5 dim2=4 layout=permuted-0213",
               "cols=36 rows=1 dim2=5 layout=window",
               "cols=2048 rows=3",
               "cols=1 rows=1",
               "cols=0 rows=3",
               "cols=8 rows=0",
           }) {
        cases.push_back(make_case(type + form + std::string(shape)));
      }
    }
    for (const std::string form : {"form=single", "form=swapped"}) {
      cases.push_back(make_case(type + form + " cols=2 rows=7 dim2=11 dim3=13 odd=1"));
      cases.push_back(make_case(type + form + " cols=64 rows=3 odd=1"));
      cases.push_back(make_case(type + form + " cols=4 dim2=65536"));
    }
  }
  cases.push_back(make_case("cols=4096 rows=1100"));  // more than four packs for every resident thread
  return cases;
}

}  // namespace

Result<Tensor*> swiglu(Graph& graph, Tensor* a, bool swapped) {
  CUDABK_TRY(check_type(*a));
  const Shape ne{a->ne[0] / 2, a->ne[1], a->ne[2], a->ne[3]};
  return graph.node(kName, OpParams::of(GluParams{swapped ? 1 : 0}), a->type, ne, {a});
}

Result<Tensor*> swiglu_split(Graph& graph, Tensor* a, Tensor* b) {
  CUDABK_TRY(check_type(*a));
  if (a->type != b->type || !same_shape(*a, *b)) {
    return invalid(fmt::format("swiglu: a {} and b {} differ in type or shape", describe(*a), describe(*b)));
  }
  return graph.node(kName, OpParams::of(GluParams{}), a->type, a->ne, {a, b});
}

const OpDef& swiglu_op() {
  static const SwigluOp op;
  return op;
}

}  // namespace cudabk
