// Products with weights in the `frag` layout: activations to f16 fragments once per plan, then tensor cores.
#include <fmt/format.h>

#include "formats/frag_place.h"
#include "frag/args.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

// The activations as fragments in tiles of `cols`, shared by all products of `x` whose weights take off the same start
// values.
BufferRef pack_columns(const Tensor& x, FragShape s, int cols, LowerContext& ctx, Launches& launches) {
  const int64_t n = x.ne[1], batch = x.ne[2] * x.ne[3], units = frag_units(x.ne[0]);
  float zero[4];
  for (int i = 0; i < 4; ++i) {
    zero[i] = frag_start_zero(s, i / 2, i % 2);
  }
  const std::string tag =
      fmt::format("fragments of {}, groups of {}, {} {} {} {}", cols, s.group, zero[0], zero[1], zero[2], zero[3]);
  const auto memory =
      ctx.shared_scratch(x, tag, batch * ((n + cols - 1) / cols) * units * column_unit_bytes(s.group, cols));
  if (!memory.fresh) {
    return memory.ref;
  }
  const bool vector = rows_aligned(x, 16) && x.ne[0] % 4 == 0;
  KernelCall<PackColumnsArgs> call(
      {"frag/columns.h", fmt::format("pack_units<{}, {}, {}>", s.group, cols, vector)},
      {static_cast<uint32_t>((units + kPackWarps - 1) / kPackWarps), grid_extent(n), grid_extent(batch)},
      {kPackWarps * 32});
  set_activations(call, x, ctx);
  call.args.batch = static_cast<int32_t>(batch);
  std::copy(zero, zero + 4, call.args.zero);
  call.bind(call.args.units, memory.ref);
  call.work().programmatic = true;
  launches.push_back(call.launch("pack_units"));
  return memory.ref;
}

// What a product's blocks are: columns that are packed together (0: the product packs them), columns and strips of a
// block, all of its warps, bytes of shared memory.
struct FragBlock {
  int tile_cols, cols, strips, warps, shared;
};

// Two strips of an SM at a time, not more: the next kernel, which may start early, would fill some SMs with its blocks
// and leave others without. Where registers do not see to that, blocks ask for more shared memory than they use.
int shared_for_two_strips(int shared, int strips, const DeviceInfo& d) {
  const int blocks = 2 / strips;
  return std::max(shared, d.max_shared_bytes / (blocks + 1) + 16);
}

Launches lower_frag(const Product& p, KernelKey key, const FragBlock& block, LowerContext& ctx) {
  Launches launches;
  const Tensor& w = p.weights;
  const std::string label = fmt::format("{} {}", p.choice.family, dtype_name(w.type));
  const bool own = block.tile_cols == 0;
  const BufferRef x = own ? ctx.data(p.x) : pack_columns(p.x, frag_shape(w.type), block.tile_cols, ctx, launches);
  const Dim3 grid = {static_cast<uint32_t>((frag_strips(p.m()) + block.strips - 1) / block.strips),
                     static_cast<uint32_t>((p.n() + block.cols - 1) / block.cols), grid_extent(p.batch())};
  KernelCall<FragArgs> call(std::move(key), grid, {static_cast<uint32_t>(block.warps * 32)},
                            static_cast<uint32_t>(block.shared));
  set_frag_weights(call, p, *frag_view(w), ctx);  // the families apply to nothing else
  call.bind(call.args.x, x);
  if (own) {
    call.args.x_nb1 = p.x.nb[1];
    call.args.x_nb2 = p.x.nb[2];
    call.args.x_nb3 = p.x.nb[3];
  }
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(label));
  return launches;
}

}  // namespace

Launches lower_frag_vector(const Product& p, LowerContext& ctx) {
  const Config& c = p.choice.config;
  const int warps = c.at("warps"), strips = c.at("strips"), unroll = c.at("unroll"), cols = frag_narrow_columns(p.n());
  const DType type = p.weights.type;
  // Views that begin anywhere are packed before, and so is what several nodes read: once for all of them.
  const bool own = c.at("pack") == 0 && rows_aligned(p.x, 16) && ctx.readers(p.x) == 1;
  return lower_frag(p,
                    {"frag/vector.h", fmt::format("frag_vector<{}, {}, {}, {}, {}, {}>", type_text(type), cols, warps,
                                                  strips, unroll, own)},
                    {own ? 0 : cols, cols, strips, warps * strips,
                     frag_vector_shared_bytes(type, warps, strips, ctx.device().code_cc())},
                    ctx);
}

Launches lower_frag_ring(const Product& p, LowerContext& ctx) {
  const Config& c = p.choice.config;
  const DType type = p.weights.type;
  const int strips = c.at("strips"), warps = c.at("warps"), stages = c.at("stages"), cols = frag_narrow_columns(p.n());
  const int shared = frag_ring_shared_bytes(type, cols, strips, warps, stages);
  return lower_frag(p,
                    {"frag/narrow_ring.h",
                     fmt::format("frag_ring<{}, {}, {}, {}, {}>", type_text(type), cols, strips, warps, stages)},
                    {cols, cols, strips, warps, shared_for_two_strips(shared, strips, ctx.device())}, ctx);
}

Launches lower_frag_wide(const Product& p, LowerContext& ctx) {
  const Config& c = p.choice.config;
  const DType type = p.weights.type;
  const int tiles = c.at("tiles"), strips = c.at("strips"), warps = c.at("warps"), stages = c.at("stages");
  const int shared = frag_wide_shared_bytes(type, tiles, strips, warps, stages);
  return lower_frag(
      p, {"frag/wide.h", fmt::format("frag_wide<{}, {}, {}, {}, {}>", type_text(type), tiles, strips, warps, stages)},
      {8, 8 * tiles, strips, warps, shared_for_two_strips(shared, strips, ctx.device())}, ctx);
}

Launches lower_frag_direct(const Product& p, LowerContext& ctx) {
  const DType type = p.weights.type;
  const int warps = p.choice.config.at("warps");
  return lower_frag(p, {"frag/direct.h", fmt::format("frag_direct<{}, {}>", type_text(type), warps)},
                    {8, 8, 1, warps, frag_wide_rings_place(type, 1, 1, warps)}, ctx);
}

}  // namespace cudabk
