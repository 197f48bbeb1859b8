#include "ops/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "copy/args.h"
#include "ops/cases.h"
#include "ops/copy_blocks.h"
#include "ops/copy_cases.h"
#include "ops/copy_plan.h"
#include "ops/op_def.h"
#include "ops/row_moves.h"

namespace cudabk {
namespace {

constexpr std::string_view kCpy = "cpy";
constexpr std::string_view kCont = "cont";
constexpr std::array<std::string_view, 4> kDstAxes = {"cols-dst", "rows-dst", "dim2-dst", "dim3-dst"};

bool moves_with_strides(DType type) { return is_float(type) || type == DType::i32; }

bool converts(DType from, DType to) {
  return (is_float(from) && is_float(to)) || (from == DType::f32 && to == DType::i32) ||
         (from == DType::i32 && to == DType::f32) || converts_blocks(from, to);
}

Status check_copy(std::string_view op, const Tensor& a, const Tensor& target) {
  if (element_count(a) != element_count(target)) {
    return invalid(fmt::format("{}: {} has {} elements, the target {} has {}", op, describe(a), element_count(a),
                               describe(target), element_count(target)));
  }
  if (a.type != target.type && !converts(a.type, target.type)) {
    return invalid(
        fmt::format("{}: no conversion from {} to {}; valid: f32, f16, bf16 among each other, i32 <-> f32, "
                    "f32 to q4_0, q4_1, q5_0, q5_1, q8_0, iq4_nl, all but the last back, every type to itself",
                    op, describe(a), describe(target)));
  }
  return success();
}

Result<Launch> lower_bytes(const Tensor& src, const Tensor& dst, LowerContext& ctx) {
  const int64_t bytes = row_bytes(src.type, element_count(src));
  const int64_t offsets = src.view_offset | dst.view_offset;
  if (offsets % 4 == 0) {
    const int width = offsets % 16 == 0 ? 16 : 4;
    const int packs = packs_per_thread(bytes / width, ctx.device());
    // At least one block's worth, so that the bytes behind the last whole access have their threads.
    CUDABK_ASSIGN(const Dim3 grid, linear_grid(std::max<int64_t>(bytes / width, 1), int64_t{kRowThreads} * packs));
    KernelCall<CopyBytesArgs> call({"copy/copy.h", fmt::format("copy_bytes<{}, {}, {}>", kRowThreads, width, packs)},
                                   grid, {kRowThreads, 1, 1});
    call.args.bytes = bytes;
    call.bind(call.args.src, ctx.data(src));
    call.bind(call.args.dst, ctx.data(dst));
    return call.launch("copy bytes");
  }
  // Odd addresses: as one row of the widest elements that fit.
  const int64_t size = (offsets | bytes) % 2 == 0 ? 2 : 1;
  const std::vector<LoopDim> dims{{bytes / size, {1, 1, 0}, bytes / size}};
  CUDABK_ASSIGN(const RowLaunch rows, plan_rows(dims, 1, ctx.device()));
  const std::string_view type = size == 2 ? "uint16_t" : "uint8_t";
  KernelCall<CopyRowsArgs> call(
      {"copy/copy.h", fmt::format("copy_rows<{}, {}, {}, 1, {}>", type, type, kRowThreads, rows.packs)}, rows.blocks,
      {kRowThreads, 1, 1});
  call.args.grid = rows.grid;
  call.bind(call.args.src, ctx.data(src));
  call.bind(call.args.dst, ctx.data(dst));
  return call.launch("copy bytes");
}

Result<Launch> lower_rows(const Tensor& src, const Tensor& dst, const std::vector<LoopDim>& dims, LowerContext& ctx) {
  // Packs of 16 bytes of the wider type.
  const int size = std::max(block_bytes(src.type), block_bytes(dst.type));
  const int wide = src.type == dst.type ? 16 / size : 4;
  const bool aligned =
      dims[0].extent % wide == 0 && is_vector_aligned(dims, 0, src, wide) && is_vector_aligned(dims, 1, dst, wide);
  const int vec = aligned ? wide : 1;
  CUDABK_ASSIGN(const RowLaunch rows, plan_rows(dims, vec, ctx.device()));
  KernelCall<CopyRowsArgs> call(
      {"copy/copy.h",
       fmt::format("copy_rows<{}, {}, {}, {}>", element_types(src.type, dst.type), kRowThreads, vec, rows.packs)},
      rows.blocks, {kRowThreads, 1, 1});
  call.args.grid = rows.grid;
  call.args.src_strides = row_strides(dims, 0);
  call.args.dst_strides = row_strides(dims, 1);
  call.bind(call.args.src, ctx.data(src));
  call.bind(call.args.dst, ctx.data(dst));
  return call.launch("copy rows");
}

// Tiles of 128 bytes along each side of a two-byte source, else of 32 elements.
Result<Launch> lower_transposed(const Tensor& src, const Tensor& dst, const std::vector<LoopDim>& dims,
                                LowerContext& ctx) {
  const int size = block_bytes(src.type);
  const int tile = size == 2 ? 64 : 32;
  const int pitch = tile + 4 / size;
  const auto dim = [&](size_t i) { return i < dims.size() ? dims[i] : LoopDim{}; };
  const int64_t tiles0 = (dim(0).extent + tile - 1) / tile, tiles1 = (dim(1).extent + tile - 1) / tile;
  CUDABK_ASSIGN(const Dim3 grid, linear_grid(tiles0 * tiles1 * dim(2).extent * dim(3).extent, 1));
  KernelCall<CopyTransposedArgs> call(
      {"copy/copy.h", fmt::format("copy_transposed<{}, {}, {}>", element_types(src.type, dst.type), kRowThreads, tile)},
      grid, {kRowThreads, 1, 1}, static_cast<uint32_t>(tile * pitch * size));
  CopyTransposedArgs& a = call.args;
  a.ne0 = dim(0).extent;
  a.ne1 = dim(1).extent;
  a.ne2 = dim(2).extent;
  a.tiles0 = tiles0;
  a.tiles1 = tiles1;
  a.src_s0 = dim(0).stride[0];
  a.src_s2 = dim(2).stride[0];
  a.src_s3 = dim(3).stride[0];
  a.dst_s1 = dim(1).stride[1];
  a.dst_s2 = dim(2).stride[1];
  a.dst_s3 = dim(3).stride[1];
  call.bind(a.src, ctx.data(src));
  call.bind(a.dst, ctx.data(dst));
  return call.launch("copy transposed");
}

Result<Launch> lower_strided(const Tensor& src, const Tensor& dst, const std::vector<LoopDim>& dims,
                             LowerContext& ctx) {
  CUDABK_ASSIGN(const Dim3 grid, linear_grid(element_count(src), kRowThreads));
  KernelCall<CopyStridedArgs> call(
      {"copy/copy.h", fmt::format("copy_strided<{}, {}>", element_types(src.type, dst.type), kRowThreads)}, grid,
      {kRowThreads, 1, 1});
  const auto side = [&](const Tensor& t, int operand) {
    std::vector<LoopDim> own = dims;
    for (int i = 0; own.size() < 4 && dims.empty(); ++i) {
      own.push_back({t.ne[i], {element_stride(t, i), element_stride(t, i), 0}, t.ne[i]});
    }
    own.resize(4);
    return std::pair(
        Shape{own[0].extent, own[1].extent, own[2].extent, own[3].extent},
        Strides{own[0].stride[operand], own[1].stride[operand], own[2].stride[operand], own[3].stride[operand]});
  };
  const auto [src_ne, src_s] = side(src, 0);
  const auto [dst_ne, dst_s] = side(dst, 1);
  CopyStridedArgs& a = call.args;
  a.elements = element_count(src);
  a.src_ne0 = src_ne[0];
  a.src_ne1 = src_ne[1];
  a.src_ne2 = src_ne[2];
  a.dst_ne0 = dst_ne[0];
  a.dst_ne1 = dst_ne[1];
  a.dst_ne2 = dst_ne[2];
  a.src_s0 = src_s[0];
  a.dst_s0 = dst_s[0];
  a.src_strides = {src_s[1], src_s[2], src_s[3]};
  a.dst_strides = {dst_s[1], dst_s[2], dst_s[3]};
  call.bind(a.src, ctx.data(src));
  call.bind(a.dst, ctx.data(dst));
  return call.launch("copy strided");
}

class CopyOp final : public OpDef {
 public:
  CopyOp(std::string_view name, std::string_view summary) : name_(name), summary_(summary) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    const Tensor& a = *y.src[0];
    if (is_empty(y) || (a.type == y.type && is_contiguous(a) && is_contiguous(y))) {
      return {};
    }
    const bool known = a.type == y.type ? moves_with_strides(a.type) : converts(a.type, y.type);
    if (!known) {
      return Support::no(a.type == y.type
                             ? fmt::format("{} can only be copied where both sides are dense", dtype_name(a.type))
                             : fmt::format("no conversion from {} to {}", dtype_name(a.type), dtype_name(y.type)));
    }
    if (converts_blocks(a.type, y.type)) {
      return supports_block_copy(a, y);
    }
    for (const Tensor* t : {&a, &y}) {
      if (!has_element_strides(*t)) {
        return Support::no(fmt::format("strides of {} are not whole elements", describe(*t)));
      }
    }
    return {};
  }

  // The target is written, never read.
  Cost cost(const Tensor& y) const override {
    const Tensor& a = *y.src[0];
    return {compulsory_bytes(a) + compulsory_bytes(y), 0, a.usage == Usage::kWeights ? compulsory_bytes(a) : 0};
  }

  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override {
    std::vector<Launch> launches;
    if (is_empty(y)) {
      return launches;
    }
    const Tensor& a = *y.src[0];
    if (converts_blocks(a.type, y.type)) {
      CUDABK_ASSIGN(Launch blocks, lower_block_copy(a, y, ctx));
      launches.push_back(std::move(blocks));
      return launches;
    }
    const CopyPlan plan = plan_copy(a, y);
    CUDABK_ASSIGN(Launch launch, plan.path == CopyPath::kBytes        ? lower_bytes(a, y, ctx)
                                 : plan.path == CopyPath::kRows       ? lower_rows(a, y, plan.dims, ctx)
                                 : plan.path == CopyPath::kTransposed ? lower_transposed(a, y, plan.dims, ctx)
                                                                      : lower_strided(a, y, plan.dims, ctx));
    launches.push_back(std::move(launch));
    return launches;
  }

  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;

  // Same type, or out of a block type: exact. Else the bound of the op specification plus the largest rounding of the
  // stored type; blocks are encoded by the rules of their format.
  double tolerance(const Tensor& y) const override {
    if (converts_blocks(y.src[0]->type, y.type)) {
      return encode_nmse(y.type);
    }
    return y.src[0]->type == y.type ? 0 : 1e-6 + rounding_nmse(y.type);
  }

 private:
  bool is_cpy() const { return name_ == kCpy; }
  std::string_view name_, summary_;
};

}  // namespace

Result<Tensor*> cpy(Graph& graph, Tensor* a, Tensor* target) {
  CUDABK_TRY(check_copy(kCpy, *a, *target));
  return graph.node_into(kCpy, {}, target, {a, target});
}

Result<Tensor*> cast(Graph& graph, Tensor* a, DType type) {
  Tensor target;
  target.type = type;
  target.ne = a->ne;
  target.nb = dense_strides(type, a->ne);
  CUDABK_TRY(check_copy(kCpy, *a, target));
  return graph.node(kCpy, {}, type, a->ne, {a});
}

Result<Tensor*> cont(Graph& graph, Tensor* a) { return cont(graph, a, a->ne); }

Result<Tensor*> cont(Graph& graph, Tensor* a, Shape ne) {
  CUDABK_ASSIGN(Tensor * y, graph.node(kCont, {}, a->type, ne, {a}));
  CUDABK_TRY(check_copy(kCont, *a, *y));
  return y;
}

namespace {

std::span<const Axis> CopyOp::axes() const {
  static const auto make = [](bool cpy) {
    const std::vector<std::string> converted{"f32", "f16", "bf16", "i32"};
    std::vector<std::string> all;
    for (const DTypeTraits& t : kDTypes) {
      all.emplace_back(t.name);
    }
    std::vector<std::string> with_same = all;
    with_same.insert(with_same.begin(), "same");
    std::vector<Axis> axes{
        {"type", "type of the source", {"f32", "f16"}, {"f32"}, all},
        {"cols", "elements of a row of the source", {"4096"}, {"1024"}, {}},
        {"rows", "rows", {"4096"}, {"64"}, {}},
        {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
        {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
        {"layout",
         "memory layout of the source",
         {"dense", "permuted-1023"},
         {"dense", "permuted-1023"},
         layout_words()},
        {"cols-dst", "shape of the result, all 0: like the source", {"0"}, {"0"}, {}},
        {"rows-dst", "...", {"0"}, {"0"}, {}},
        {"dim2-dst", "...", {"0"}, {"0"}, {}},
        {"dim3-dst", "...", {"0"}, {"0"}, {}},
    };
    if (cpy) {
      axes.push_back({"type-dst", "type of the target", {"same"}, {"same"}, with_same});
      axes.push_back({"layout-dst", "memory layout of the target", {"dense"}, {"dense"}, layout_words()});
    }
    return axes;
  };
  static const std::vector<Axis> cpy_axes = make(true), cont_axes = make(false);
  return is_cpy() ? cpy_axes : cont_axes;
}

Result<Tensor*> CopyOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const DType type, parse_dtype(get_or(params, "type", "f32")));
  CUDABK_ASSIGN(const Shape ne, shape_of(params));
  CUDABK_ASSIGN(Shape dst_ne, shape_of(params, "-dst"));
  // The axes' default is 0: a shape that names none of its extents is the source's, an extent left out of one is 1.
  const bool like_source = std::all_of(kDstAxes.begin(), kDstAxes.end(), [&](std::string_view axis) {
    const std::string text = params.get(axis);
    return text.empty() || text == "0";
  });
  if (like_source) {
    dst_ne = ne;
  } else {
    for (int i = 0; i < 4; ++i) {
      dst_ne[i] = params.get(kDstAxes[i]) == "0" ? 1 : dst_ne[i];
    }
  }
  CUDABK_ASSIGN(Tensor * a, make_operand(graph, "a", type, ne, get_or(params, "layout", "dense")));
  if (!is_cpy()) {
    return cont(graph, a, dst_ne);
  }
  const std::string word = get_or(params, "type-dst", "same");
  CUDABK_ASSIGN(const DType dst_type, word == "same" ? Result<DType>(type) : parse_dtype(word));
  CUDABK_ASSIGN(Tensor * target,
                make_operand(graph, "target", dst_type, dst_ne, get_or(params, "layout-dst", "dense")));
  return cpy(graph, a, target);
}

std::vector<CaseParams> CopyOp::test_cases() const { return is_cpy() ? cpy_cases() : cont_cases(); }

}  // namespace

const OpDef& cpy_op() {
  static const CopyOp op(kCpy, "copy into given memory, converting type and layout");
  return op;
}

const OpDef& cont_op() {
  static const CopyOp op(kCont, "dense copy");
  return op;
}

}  // namespace cudabk
