#include "ops/copy_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/copy_plan.h"
#include "ops/row_moves.h"

namespace cudabk {
namespace {

constexpr int64_t kBlock = 32;  // format: elements of every type that is copied
constexpr int kSrc = 0, kDst = 1;

// One side in blocks: extents, and byte strides of which the first leads from block to block.
struct BlockSide {
  Shape ne;
  Strides nb;
  int64_t block;  // bytes

  explicit BlockSide(const Tensor& t)
      : ne(t.ne), nb(t.nb), block(kBlock / block_elements(t.type) * block_bytes(t.type)) {
    ne[0] /= kBlock;
    nb[0] = block;
  }
};

// Rows of consecutive blocks on both sides, in the order of the target's memory; false when the layouts have none.
bool find_rows(const BlockSide& src, const BlockSide& dst, RowMove& move) {
  std::vector<LoopDim> dims = common_dims(src.ne, src.nb, dst.ne, dst.nb);
  std::stable_sort(dims.begin(), dims.end(),
                   [](const LoopDim& a, const LoopDim& b) { return a.stride[kDst] < b.stride[kDst]; });
  dims = merge_dims(dims);
  if (dims.empty() || dims.size() > 4 || dims[0].stride[kSrc] != src.block || dims[0].stride[kDst] != dst.block) {
    return false;
  }
  move.map = RowMap::kDirect;
  move.ne = {1, 1, 1, 1};
  for (size_t i = 0; i < dims.size(); ++i) {
    move.ne[i] = dims[i].extent;
  }
  move.ne[0] *= kBlock;
  move.args.src_strides = row_strides(dims, kSrc);
  move.args.dst_strides = row_strides(dims, kDst);
  return true;
}

// Block by block, each side by its own shape.
void walk_blocks(const Tensor& src, const BlockSide& s, const Tensor& dst, const BlockSide& d, RowMove& move) {
  move.map = RowMap::kReshaped;
  move.ne = {kBlock, element_count(src) / kBlock, 1, 1};
  RowMovesArgs& a = move.args;
  a.src_strides = byte_strides(src);
  a.dst_strides = byte_strides(dst);
  a.src_blocks = s.ne[0];
  a.src_ne1 = s.ne[1];
  a.src_ne2 = s.ne[2];
  a.src_s0 = s.block;
  a.dst_blocks = d.ne[0];
  a.dst_ne1 = d.ne[1];
  a.dst_ne2 = d.ne[2];
  a.dst_s0 = d.block;
}

}  // namespace

bool converts_blocks(DType from, DType to) {
  return (from == DType::f32 && has_device_encoder(to)) ||
         (to == DType::f32 && has_device_encoder(from) && from != DType::iq4_nl);
}

Support supports_block_copy(const Tensor& src, const Tensor& dst) {
  for (const Tensor* t : {&src, &dst}) {
    if (const Support side = check_move_side(*t); !side) {
      return side;
    }
    if (t->ne[0] % kBlock != 0) {
      return Support::no(fmt::format("rows of {} are not whole blocks of {} elements", describe(*t), kBlock));
    }
  }
  return {};
}

Result<Launch> lower_block_copy(const Tensor& src, const Tensor& dst, LowerContext& ctx) {
  RowMove move;
  move.src = &src;
  move.dst = &dst;
  const BlockSide s(src), d(dst);
  if (!find_rows(s, d, move)) {
    walk_blocks(src, s, dst, d, move);
  }
  return lower_row_move(move, is_quantized(dst.type) ? "quantize" : "dequantize", ctx);
}

}  // namespace cudabk
