#include "ops/rms_norm.h"

#include <fmt/format.h>

#include "core/units.h"
#include "ops/binary.h"
#include "ops/cases.h"
#include "ops/row_grid.h"
#include "rms_norm/args.h"

namespace cudabk {
namespace {

constexpr std::string_view kName = "rms_norm";
constexpr int kWarpSize = 32;
constexpr int kWarpRows = 4;   // rows per block where a warp takes a row
constexpr int kHeldPacks = 4;  // packs of a row that a thread keeps in registers

struct RmsNormParams {
  float eps = 0;
};

Status check_x(const Tensor& x, float eps) {
  if (x.type != DType::f32) {
    return invalid(fmt::format("rms_norm: x is {}, only f32 is valid", describe(x)));
  }
  if (!(eps >= 0)) {
    return invalid(fmt::format("rms_norm: eps = {} is negative or not a number, x is {}", eps, describe(x)));
  }
  return success();
}

struct RowShape {
  int threads = 0;  // per row
  int rows = 0;     // per block
  int packs = 0;    // held in registers; 0: the row is read twice
};

// The fewest threads that hold a row in registers: a warp (no barrier, four rows per block), else a block of 256, 512
// or 1024; longer rows are read twice by 512. With fewer rows than the device has SMs the latency of one row is what
// counts: then a thread takes at most two packs where that needs no more than 512 threads.
RowShape row_shape(int64_t cols, int64_t rows, int vec, const DeviceInfo& device) {
  const bool few_rows = rows < device.sm_count;
  const auto fits = [&](int threads) {
    const int64_t packs = few_rows && threads < 512 ? kHeldPacks / 2 : kHeldPacks;
    return cols <= packs * vec * threads;
  };
  if (fits(kWarpSize)) {
    return {kWarpSize, kWarpRows, kHeldPacks};
  }
  for (const int threads : {256, 512, 1024}) {
    if (fits(threads)) {
      return {threads, 1, kHeldPacks};
    }
  }
  return {512, 1, 0};
}

bool is_aligned(const Tensor& t, int vec) {
  const int64_t bytes = vec * block_bytes(t.type);
  for (int i = 1; i < 4; ++i) {
    if (t.ne[i] > 1 && t.nb[i] % bytes != 0) {
      return false;
    }
  }
  return t.view_offset % bytes == 0;
}

RowStrides strides_of(const Tensor& t) { return {element_stride(t, 1), element_stride(t, 2), element_stride(t, 3)}; }

Support check_rows(const Tensor& t) {
  if (t.type != DType::f32) {
    return Support::no(fmt::format("{} is not f32", describe(t)));
  }
  if (!is_empty(t) && (!has_contiguous_rows(t) || !has_element_strides(t))) {
    return Support::no(fmt::format("{} has rows that are not dense", describe(t)));
  }
  return {};
}

class RmsNormOp final : public OpDef {
 public:
  std::string_view name() const override { return kName; }
  std::string_view summary() const override { return "rows divided by their root mean square"; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    const Support x = check_rows(*y.src[0]);
    return x ? check_rows(y) : x;
  }
  // Square and sum, then scale.
  Cost cost(const Tensor& y) const override { return element_wise_cost(y, 3); }

  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override {
    std::vector<Launch> launches;
    if (!is_empty(y)) {
      CUDABK_ASSIGN(Launch launch, lower_rms_norm(*y.src[0], nullptr, y, rms_norm_eps(y), ctx));
      launches.push_back(std::move(launch));
    }
    return launches;
  }
  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;
};

std::span<const Axis> RmsNormOp::axes() const {
  static const std::vector<Axis> axes{
      {"cols", "elements of a row", {"4096", "14336"}, {"1024"}, {}},
      {"rows", "rows", {"1", "512", "4096"}, {"1", "64"}, {}},
      {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
      {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
      {"eps", "added to the mean of squares", {"1e-6"}, {"1e-6"}, {"0", "1e-6", "1e-5", "1e-4", "1e-1", "10"}},
      {"layout", "memory layout of x", {"dense"}, {"dense"}, layout_words()},
      {"inplace", "1: the result is written over x", {"0"}, {"0"}, {}},
      {"chain",
       "nodes after the norm",
       {"none"},
       {"none"},
       {"none", "mul", "mul-swapped", "mul-add", "mul-add-swapped", "reused"}},
      {"gain-repeat", "how often the gain's rows repeat along dim 1 (0: one row)", {"0"}, {"0"}, {}},
  };
  return axes;
}

// The nodes after the norm are what a fusion rule must see through, or leave alone ("reused": the norm has two
// readers).
Result<Tensor*> add_chain(Graph& graph, Tensor* y, const std::string& chain, int64_t gain_repeat) {
  if (chain == "none") {
    return y;
  }
  Shape gain_ne{y->ne[0], 1, 1, 1};
  if (gain_repeat > 0) {
    gain_ne = y->ne;
    if (y->ne[1] % gain_repeat != 0) {
      return invalid(fmt::format("rms_norm: gain-repeat = {} does not divide rows = {}", gain_repeat, y->ne[1]));
    }
    gain_ne[1] /= gain_repeat;
  }
  if (chain == "mul-swapped") {  // the norm as second operand, which must have the full shape
    CUDABK_ASSIGN(Tensor * a, graph.leaf("a", DType::f32, y->ne));
    return mul(graph, a, y);
  }
  CUDABK_ASSIGN(Tensor * gain, graph.leaf("gain", DType::f32, gain_ne));
  CUDABK_ASSIGN(Tensor * product, mul(graph, y, gain));
  if (chain == "mul") {
    return product;
  }
  if (chain == "reused") {
    return add(graph, product, y);
  }
  CUDABK_ASSIGN(Tensor * addend, graph.leaf("addend", DType::f32, y->ne));
  return chain == "mul-add" ? add(graph, product, addend) : add(graph, addend, product);
}

Result<Tensor*> RmsNormOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const Shape ne, shape_of(params));
  CUDABK_ASSIGN(const double eps, parse_double(get_or(params, "eps", "1e-6")));
  CUDABK_ASSIGN(const int64_t inplace, get_int_or(params, "inplace", 0));
  CUDABK_ASSIGN(const int64_t gain_repeat, get_int_or(params, "gain-repeat", 0));
  CUDABK_ASSIGN(Tensor * x, make_operand(graph, "x", DType::f32, ne, get_or(params, "layout", "dense")));
  const auto make = inplace != 0 ? rms_norm_inplace : rms_norm;
  CUDABK_ASSIGN(Tensor * y, make(graph, x, static_cast<float>(eps)));
  return add_chain(graph, y, get_or(params, "chain", "none"), gain_repeat);
}

std::vector<CaseParams> RmsNormOp::test_cases() const {
  std::vector<CaseParams> cases;
  for (const std::string eps : {"0", "1e-6", "1e-4", "1e-1", "10"}) {
    for (const std::string_view layout : {"layout=dense", "layout=half", "inplace=1"}) {
      cases.push_back(make_case("cols=64 rows=5 dim2=4 dim3=3 eps=" + eps + " " + std::string(layout)));
    }
  }
  for (const std::string_view text : {
           "cols=1 rows=3",
           "cols=31 rows=9",
           "cols=511 rows=2",
           "cols=1024 rows=7",
           "cols=1025 rows=2",
           "cols=4096 rows=1",
           "cols=4097 rows=150 layout=offset",
           "cols=8192 rows=3",
           "cols=16896 rows=2",
           "cols=16897 rows=1",
           "cols=65536 rows=1",
           "cols=65600 rows=2 inplace=1",
           "cols=70001 rows=1",
           "cols=5000 rows=150",
           "cols=10000 rows=150",
           "cols=96 rows=5 layout=offset",
           "cols=96 rows=5 dim2=3 layout=permuted-0213",
           "cols=128 rows=5 layout=window inplace=1",
           "cols=64 rows=1 dim2=65536",
           "cols=64 rows=1 dim2=1 dim3=65536",
           "cols=64 rows=1 dim2=65536 chain=mul",
           "cols=64 rows=1 dim2=65537 chain=mul-add",
           "cols=0 rows=4",
           "cols=64 rows=0",
           "cols=64 rows=4 dim2=0 chain=mul",
           "cols=511 rows=3 chain=mul",
           "cols=4096 rows=3 chain=mul",
           "cols=1025 rows=6 dim2=2 chain=mul gain-repeat=2",
           "cols=8192 rows=2 chain=mul-swapped",
           "cols=64 rows=5 dim2=4 dim3=3 chain=mul-add",
           "cols=64 rows=5 dim2=4 dim3=3 chain=mul-add-swapped",
           "cols=64 rows=6 dim2=4 chain=mul-add gain-repeat=3",
           "cols=64 rows=5 dim2=4 dim3=3 chain=reused",
           "cols=64 rows=5 dim2=4 layout=permuted-0213 chain=mul",
       }) {
    cases.push_back(make_case(text));
  }
  return cases;
}

}  // namespace

Result<Tensor*> rms_norm(Graph& graph, Tensor* x, float eps) {
  CUDABK_TRY(check_x(*x, eps));
  return graph.node(kName, OpParams::of(RmsNormParams{eps}), DType::f32, x->ne, {x});
}

Result<Tensor*> rms_norm_inplace(Graph& graph, Tensor* x, float eps) {
  CUDABK_TRY(check_x(*x, eps));
  return graph.node_into(kName, OpParams::of(RmsNormParams{eps}), x, {x});
}

float rms_norm_eps(const Tensor& y) { return y.params.as<RmsNormParams>().eps; }

Support supports_rms_norm_gain(const Tensor& x, const Tensor& gain, const Tensor& dst) {
  for (const Tensor* t : {&x, &gain, &dst}) {
    if (const Support s = check_rows(*t); !s) {
      return s;
    }
  }
  if (!same_shape(x, dst)) {
    return Support::no(fmt::format("the product {} is shaped unlike x {}", describe(dst), describe(x)));
  }
  if (!can_repeat_rows(gain, x)) {
    return Support::no(fmt::format("rows of the gain {} do not repeat to x {}", describe(gain), describe(x)));
  }
  return {};
}

Result<Launch> lower_rms_norm(const Tensor& x, const Tensor* gain, const Tensor& dst, float eps, LowerContext& ctx) {
  const int64_t cols = x.ne[0], rows = row_count(x);
  const bool aligned = cols % 4 == 0 && is_aligned(x, 4) && is_aligned(dst, 4) && (!gain || is_aligned(*gain, 4));
  const int vec = aligned ? 4 : 1;
  const auto [threads, block_rows, packs] = row_shape(cols, rows, vec, ctx.device());
  CUDABK_ASSIGN(const Dim3 grid, linear_grid(rows, block_rows));
  const uint32_t shared = threads == kWarpSize ? 0 : static_cast<uint32_t>(threads / kWarpSize * sizeof(float));

  KernelCall<RmsNormArgs> call({"rms_norm/rms_norm.h", fmt::format("rms_norm<{}, {}, {}, {}, {}>", threads, block_rows,
                                                                   vec, packs, gain != nullptr)},
                               grid, {static_cast<uint32_t>(threads * block_rows), 1, 1}, shared);
  call.args.cols = cols;
  call.args.rows = rows;
  call.args.ne1 = x.ne[1];
  call.args.ne2 = x.ne[2];
  call.args.x_strides = strides_of(x);
  call.args.y_strides = strides_of(dst);
  call.args.eps = eps;
  call.bind(call.args.x, ctx.data(x));
  call.bind(call.args.y, ctx.data(dst));
  if (gain != nullptr) {
    call.args.gain_strides = strides_of(*gain);
    call.args.gain_ne1 = gain->ne[1];
    call.args.gain_ne2 = gain->ne[2];
    call.args.gain_ne3 = gain->ne[3];
    call.bind(call.args.gain, ctx.data(*gain));
  }
  return call.launch(gain != nullptr ? "rms_norm * gain" : "rms_norm");
}

const OpDef& rms_norm_op() {
  static const RmsNormOp op;
  return op;
}

}  // namespace cudabk
