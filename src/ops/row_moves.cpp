#include "ops/row_moves.h"

#include <fmt/format.h>

#include "formats/slices.h"
#include "ops/row_grid.h"

namespace cudabk {
namespace {

constexpr int kWarpSize = 32;
constexpr int kAccess = 16;    // bytes of the widest load or store
constexpr int kEncodeVec = 4;  // elements of a block that a thread takes
constexpr int kWideStore = 4;  // bytes: blocks of neighbouring threads are stored in words
constexpr const char* kHeader = "row_moves/row_moves.h";

bool starts_aligned(const Tensor& t, const RowStrides& s, int64_t between, int64_t bytes) {
  return (t.view_offset | s.s1 | s.s2 | s.s3 | between) % bytes == 0;
}

std::string_view map_text(RowMap map) {
  switch (map) {
    case RowMap::kReshaped:
      return "RowMap::kReshaped";
    case RowMap::kGather32:
      return "RowMap::kGather32";
    case RowMap::kScatter32:
      return "RowMap::kScatter32";
    case RowMap::kScatter64:
      return "RowMap::kScatter64";
    default:
      return "RowMap::kDirect";
  }
}

std::string type_argument(DType type) { return fmt::format("DType::{}", dtype_name(type)); }

// What the kernel is called with, apart from its arguments.
struct Variant {
  std::string text;
  RowLaunch rows;
  uint32_t shared_bytes = 0;
};

std::vector<LoopDim> walked_dims(const Shape& ne, int64_t cols) {
  std::vector<LoopDim> dims;
  for (int i = 0; i < 4; ++i) {
    const int64_t extent = i == 0 ? cols : ne[i];
    dims.push_back({extent, {}, extent});
  }
  return dims;
}

Result<Variant> plain_variant(const RowMove& m, const DeviceInfo& device) {
  const int src_size = block_bytes(m.src->type), dst_size = block_bytes(m.dst->type);
  const int wide = kAccess / std::max(src_size, dst_size);
  const bool aligned = m.ne[0] % wide == 0 && starts_aligned(*m.src, m.args.src_strides, 0, int64_t{wide} * src_size) &&
                       starts_aligned(*m.dst, m.args.dst_strides, 0, int64_t{wide} * dst_size);
  const int vec = aligned ? wide : 1;
  Variant v;
  CUDABK_ASSIGN(v.rows, plan_rows(walked_dims(m.ne, m.ne[0]), vec, device));
  v.text = fmt::format("move_rows<{}, {}, {}, {}>", element_types(m.src->type, m.dst->type), map_text(m.map), vec,
                       v.rows.packs);
  return v;
}

Result<Variant> decode_variant(const RowMove& m, const DeviceInfo& device) {
  const SliceShape slice = slice_shape(m.src->type);
  const bool aligned = starts_aligned(*m.dst, m.args.dst_strides, m.args.dst_s0, kAccess);
  Variant v;
  CUDABK_ASSIGN(v.rows, plan_rows(walked_dims(m.ne, m.ne[0] / slice.elements()), 1, device, aligned));
  v.text =
      fmt::format("decode_rows<{}, {}, {}, {}>", type_argument(m.src->type), map_text(m.map), aligned, v.rows.packs);
  v.shared_bytes = static_cast<uint32_t>(decode_stage_bytes(slice.run_length));
  return v;
}

Result<Variant> encode_variant(const RowMove& m, const DeviceInfo& device) {
  const bool aligned = starts_aligned(*m.src, m.args.src_strides, m.args.src_s0, kAccess);
  const bool words = aligned && starts_aligned(*m.dst, m.args.dst_strides, 0, kWideStore);
  Variant v;
  CUDABK_ASSIGN(v.rows, plan_rows(walked_dims(m.ne, m.ne[0]), kEncodeVec, device, words));
  const bool wide = words && (1 << v.rows.grid.col_threads_log2) >= kWarpSize;
  v.text = fmt::format("encode_rows<{}, {}, {}, {}, {}>", type_argument(m.dst->type), map_text(m.map), aligned, wide,
                       v.rows.packs);
  v.shared_bytes = static_cast<uint32_t>(encode_stage_bytes(block_bytes(m.dst->type)));
  return v;
}

}  // namespace

bool has_device_encoder(DType type) {
  switch (type) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q8_0:
    case DType::iq4_nl:
      return true;
    default:
      return false;
  }
}

double encode_nmse(DType type) {
  // The refitted scale may differ by one unit in the last place of f16, in any block.
  return type == DType::iq4_nl ? 0x1p-20 : 0;
}

Support check_move_side(const Tensor& t) {
  if (is_empty(t) || (has_contiguous_rows(t) && has_element_strides(t))) {
    return {};
  }
  return Support::no(fmt::format("{} has rows that are not dense, or strides that are not whole {}", describe(t),
                                 is_quantized(t.type) ? "blocks" : "elements"));
}

RowStrides byte_strides(const Tensor& t) {
  const auto stride = [&](int i) { return t.ne[i] > 1 ? t.nb[i] : 0; };
  return {stride(1), stride(2), stride(3)};
}

Result<Launch> lower_row_move(const RowMove& move, std::string_view label, LowerContext& ctx) {
  const bool decodes = is_quantized(move.src->type), encodes = is_quantized(move.dst->type);
  CUDABK_ASSIGN(Variant variant, decodes   ? decode_variant(move, ctx.device())
                                 : encodes ? encode_variant(move, ctx.device())
                                           : plain_variant(move, ctx.device()));
  KernelCall<RowMovesArgs> call({kHeader, variant.text}, variant.rows.blocks, {kRowMoveThreads, 1, 1},
                                variant.shared_bytes);
  call.args = move.args;
  call.args.grid = variant.rows.grid;
  call.bind(call.args.src, ctx.data(*move.src));
  call.bind(call.args.dst, ctx.data(*move.dst));
  if (move.index != nullptr) {
    const Tensor& index = *move.index;
    call.args.index_strides = {index.nb[0], index.nb[1], index.nb[2]};
    call.args.index_ne1 = index.ne[1];
    call.args.index_ne2 = index.ne[2];
    call.bind(call.args.index, ctx.data(index));
  }
  return call.launch(fmt::format("{} {}", label, dtype_name(decodes ? move.src->type : move.dst->type)));
}

}  // namespace cudabk
