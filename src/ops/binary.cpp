#include "ops/binary.h"

#include <fmt/format.h>

#include "binary/args.h"
#include "ops/cases.h"
#include "ops/op_def.h"
#include "ops/row_grid.h"

namespace cudabk {
namespace {

constexpr std::string_view kAdd = "add";
constexpr std::string_view kMul = "mul";

struct TypeCombination {
  DType a, b, y;
};
constexpr TypeCombination kCombinations[] = {
    {DType::f32, DType::f32, DType::f32}, {DType::f32, DType::f16, DType::f32}, {DType::f16, DType::f32, DType::f32},
    {DType::f16, DType::f32, DType::f16}, {DType::f16, DType::f16, DType::f16},
};

bool has_types(DType a, DType b, DType y) {
  for (const TypeCombination& c : kCombinations) {
    if (c.a == a && c.b == b && c.y == y) {
      return true;
    }
  }
  return false;
}

Status check_operands(std::string_view op, const Tensor& a, const Tensor& b, DType y) {
  if (!can_repeat(b, a)) {
    return invalid(fmt::format("{}: b {} cannot be repeated to the shape of a {}", op, describe(b), describe(a)));
  }
  if (!has_types(a.type, b.type, y)) {
    return invalid(
        fmt::format("{}: types a {}, b {}, result {}; valid: f32,f32,f32 f32,f16,f32 f16,f32,f32 f16,f32,f16 "
                    "f16,f16,f16",
                    op, dtype_name(a.type), dtype_name(b.type), dtype_name(y)));
  }
  return success();
}

Result<Tensor*> make_node(std::string_view op, Graph& graph, Tensor* a, Tensor* b, DType type) {
  CUDABK_TRY(check_operands(op, *a, *b, type));
  return graph.node(op, {}, type, a->ne, {a, b});
}

Result<Tensor*> make_inplace(std::string_view op, Graph& graph, Tensor* a, Tensor* b) {
  CUDABK_TRY(check_operands(op, *a, *b, a->type));
  return graph.node_into(op, {}, a, {a, b});
}

const char* type_text(DType type) { return type == DType::f32 ? "float" : "f16"; }

class BinaryOp final : public OpDef {
 public:
  BinaryOp(std::string_view name, std::string_view functor, std::string_view summary)
      : name_(name), functor_(functor), summary_(summary) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    const Tensor &a = *y.src[0], &b = *y.src[1];
    if (!has_types(a.type, b.type, y.type)) {
      return Support::no(
          fmt::format("no kernel for types {}, {}, {}", dtype_name(a.type), dtype_name(b.type), dtype_name(y.type)));
    }
    if (is_empty(y)) {
      return {};
    }
    for (const Tensor* t : {&a, &b, &y}) {
      if (!has_contiguous_rows(*t) || !has_element_strides(*t)) {
        return Support::no(fmt::format("{} has rows that are not dense", describe(*t)));
      }
    }
    return {};
  }

  Cost cost(const Tensor& y) const override { return element_wise_cost(y, 1); }
  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override;
  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;
  double tolerance(const Tensor& y) const override { return 1e-7 + rounding_nmse(y.type); }

 private:
  std::string_view name_, functor_, summary_;
};

// Dims of the computation, merged; operands a, b, y.
std::vector<LoopDim> loop_dims(const Tensor& a, const Tensor& b, const Tensor& y) {
  std::vector<LoopDim> dims;
  for (int i = 0; i < 4; ++i) {
    LoopDim d{y.ne[i], {element_stride(a, i), element_stride(b, i), element_stride(y, i)}, b.ne[i]};
    if (i == 0) {
      d.stride = {1, 1, 1};
    }
    dims.push_back(d);
  }
  return merge_dims(dims);
}

Result<std::vector<Launch>> BinaryOp::lower(const Tensor& y, LowerContext& ctx) const {
  std::vector<Launch> launches;
  if (is_empty(y)) {
    return launches;
  }
  const Tensor &a = *y.src[0], &b = *y.src[1];
  const std::vector<LoopDim> dims = loop_dims(a, b, y);
  const int64_t cols = dims[0].extent, b_cols = dims[0].wrapped;
  const std::string_view mode = b_cols == cols ? "kSame" : b_cols == 1 ? "kScalar" : "kWrap";

  // Packs of 16 bytes of the widest type where everything is aligned to them.
  int vec = y.type == DType::f16 && b.type == DType::f16 ? 8 : 4;
  const bool aligned = cols % vec == 0 && is_vector_aligned(dims, 0, a, vec) && is_vector_aligned(dims, 2, y, vec) &&
                       (mode == "kScalar" || (mode == "kSame" && is_vector_aligned(dims, 1, b, vec)));
  vec = aligned ? vec : 1;
  CUDABK_ASSIGN(const RowLaunch rows, plan_rows(dims, vec, ctx.device()));

  KernelCall<BinaryArgs> call(
      {"binary/binary.h", fmt::format("binary<{}, {}, {}, {}, ColumnMode::{}, {}, {}, {}>", functor_, type_text(a.type),
                                      type_text(b.type), type_text(y.type), mode, kRowThreads, vec, rows.packs)},
      rows.blocks, {kRowThreads, 1, 1});
  const auto wrapped = [&](size_t i) { return i < dims.size() ? dims[i].wrapped : 1; };
  call.args.grid = rows.grid;
  call.args.a_strides = row_strides(dims, 0);
  call.args.b_strides = row_strides(dims, 1);
  call.args.y_strides = row_strides(dims, 2);
  call.args.b_cols = b_cols;
  call.args.b_ne1 = wrapped(1);
  call.args.b_ne2 = wrapped(2);
  call.args.b_ne3 = wrapped(3);
  call.bind(call.args.a, ctx.data(a));
  call.bind(call.args.b, ctx.data(b));
  call.bind(call.args.y, ctx.data(y));
  launches.push_back(call.launch(std::string(name_)));
  return launches;
}

std::span<const Axis> BinaryOp::axes() const {
  static const std::vector<Axis> axes{
      {"type", "type of a", {"f32"}, {"f32"}, {"f32", "f16"}},
      {"type-b", "type of b", {"same"}, {"same"}, {"same", "f32", "f16"}},
      {"type-dst", "type of the result", {"same"}, {"same"}, {"same", "f32", "f16"}},
      {"cols", "elements of a row", {"4096", "14336"}, {"1024"}, {}},
      {"rows", "rows", {"1", "512", "4096"}, {"1", "64"}, {}},
      {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
      {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
      {"repeat0", "how often b repeats along a row", {"1"}, {"1"}, {}},
      {"repeat1", "... along the rows", {"1"}, {"1"}, {}},
      {"repeat2", "... along dim 2", {"1"}, {"1"}, {}},
      {"repeat3", "... along dim 3", {"1"}, {"1"}, {}},
      {"layout", "memory layout of a", {"dense"}, {"dense"}, layout_words()},
      {"layout-b", "memory layout of b", {"dense"}, {"dense"}, layout_words()},
      {"inplace", "1: the result is written over a", {"0"}, {"0"}, {}},
  };
  return axes;
}

// cols, rows, dim2, dim3 are the shape of a; b has that shape divided by repeat0..repeat3.
Result<Tensor*> BinaryOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const DType type_a, parse_dtype(get_or(params, "type", "f32")));
  const auto type_like_a = [&](std::string_view axis) {
    const std::string word = get_or(params, axis, "same");
    return word == "same" ? Result<DType>(type_a) : parse_dtype(word);
  };
  CUDABK_ASSIGN(const DType type_b, type_like_a("type-b"));
  CUDABK_ASSIGN(const DType type_y, type_like_a("type-dst"));
  CUDABK_ASSIGN(const Shape ne, shape_of(params));
  Shape b_ne{};
  for (int i = 0; i < 4; ++i) {
    const std::string axis = fmt::format("repeat{}", i);
    CUDABK_ASSIGN(const int64_t repeat, get_int_or(params, axis, 1));
    if (repeat < 1 || ne[i] % repeat != 0) {
      return invalid(fmt::format("{}: {} = {} does not divide the extent {}", name_, axis, repeat, ne[i]));
    }
    b_ne[i] = ne[i] / repeat;
  }
  CUDABK_ASSIGN(const int64_t inplace, get_int_or(params, "inplace", 0));
  CUDABK_ASSIGN(Tensor * a, make_operand(graph, "a", type_a, ne, get_or(params, "layout", "dense")));
  CUDABK_ASSIGN(Tensor * b, make_operand(graph, "b", type_b, b_ne, get_or(params, "layout-b", "dense")));
  return inplace != 0 ? make_inplace(name_, graph, a, b) : make_node(name_, graph, a, b, type_y);
}

std::vector<CaseParams> BinaryOp::test_cases() const {
  std::vector<CaseParams> cases;
  for (const std::string types :
       {"type=f32", "type=f16", "type=f16 type-b=f32", "type=f16 type-b=f32 type-dst=f32", "type=f32 type-b=f16"}) {
    for (const std::string_view shape : {
             "cols=1 dim2=8",
             "cols=32 repeat0=32",
             "dim2=320 dim3=320",
             "cols=10 rows=5",
             "cols=10 rows=5 dim2=4 dim3=3",
             "cols=20 rows=5 dim2=4 dim3=3 repeat0=2",
             "cols=10 rows=10 dim2=4 dim3=3 repeat1=2",
             "cols=10 rows=5 dim2=8 dim3=3 repeat2=2",
             "cols=10 rows=5 dim2=4 dim3=6 repeat3=2",
             "cols=10 rows=5 dim2=8 dim3=6 repeat2=2 repeat3=2",
             "cols=20 rows=10 dim2=8 dim3=6 repeat0=2 repeat1=2 repeat2=2 repeat3=2",
             "cols=1280 rows=16 dim2=16 repeat1=16 repeat2=16",
             "cols=640 rows=32 dim2=3 repeat0=640 repeat1=32",
             "cols=4096 rows=3",
             "cols=257 rows=5 repeat1=5",
             "cols=64 rows=6 dim2=2 layout=half layout-b=half",
             "cols=64 rows=6 dim2=2 layout=offset layout-b=offset inplace=1",
             "cols=33 rows=5 dim2=4 layout=permuted-0213 layout-b=permuted-0321",
             "cols=64 rows=7 layout=window repeat1=7 layout-b=window",
             "cols=64 rows=5 inplace=1",
             "cols=0 rows=4",
             "cols=16 rows=0",
         }) {
      const bool inplace_cast =
          types.find("type-dst") != std::string::npos && shape.find("inplace") != std::string_view::npos;
      if (!inplace_cast) {  // a result of another type cannot live in a's memory
        cases.push_back(make_case(types + " " + std::string(shape)));
      }
    }
  }
  // More rows than a grid has along y or z; more than four packs for every resident thread.
  cases.push_back(make_case("cols=8 dim2=65536 repeat0=8"));
  cases.push_back(make_case("cols=4 rows=262144 layout=half"));
  cases.push_back(make_case("cols=2 rows=1 dim2=1 dim3=65537 layout=offset"));
  cases.push_back(make_case("cols=4096 rows=1100"));
  cases.push_back(make_case("type=f16 cols=4098 rows=280 layout=half repeat1=280"));
  return cases;
}

}  // namespace

Result<Tensor*> add(Graph& graph, Tensor* a, Tensor* b) { return make_node(kAdd, graph, a, b, a->type); }
Result<Tensor*> add_cast(Graph& graph, Tensor* a, Tensor* b, DType type) { return make_node(kAdd, graph, a, b, type); }
Result<Tensor*> mul(Graph& graph, Tensor* a, Tensor* b) { return make_node(kMul, graph, a, b, a->type); }
Result<Tensor*> add_inplace(Graph& graph, Tensor* a, Tensor* b) { return make_inplace(kAdd, graph, a, b); }
Result<Tensor*> mul_inplace(Graph& graph, Tensor* a, Tensor* b) { return make_inplace(kMul, graph, a, b); }

const OpDef& add_op() {
  static const BinaryOp op(kAdd, "Add", "sum of two tensors, the second repeated to the shape of the first");
  return op;
}

const OpDef& mul_op() {
  static const BinaryOp op(kMul, "Mul", "product of two tensors, the second repeated to the shape of the first");
  return op;
}

}  // namespace cudabk
