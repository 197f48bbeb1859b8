// mmsf_group: 16-bit float weights times up to 64 columns, by warp groups (sm_90a).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "formats/frag_place.h"
#include "mmsf/group_args.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

// The activations as bf16 tiles, shared by all products of `x`.
BufferRef pack_bf16_tiles(const Tensor& x, LowerContext& ctx, Launches& launches) {
  const int64_t tiles = (x.ne[1] + 7) / 8, batch = x.ne[2] * x.ne[3], pieces = frag_units(x.ne[0]) * (kFragDepth / 8);
  const auto memory = ctx.shared_scratch(x, "tiles of bf16", batch * tiles * pieces * 128);
  if (memory.fresh) {
    const Dim3 grid{static_cast<uint32_t>(tiles), static_cast<uint32_t>(pieces / (kGroupPackThreads / 8)),
                    grid_extent(batch)};
    KernelCall<PackTilesArgs> call({"mmsf/group_columns.h", fmt::format("pack_bf16_tiles<{}>", rows_aligned(x, 16))},
                                   grid, {kGroupPackThreads});
    set_activations(call, x, ctx);
    call.args.batch = static_cast<int32_t>(batch);
    call.bind(call.args.tiles, memory.ref);
    call.work().programmatic = true;
    launches.push_back(call.launch("pack_bf16_tiles"));
  }
  return memory.ref;
}

// Rows of weights that do not start on multiples of 16 bytes, which a family cannot know of.
Launches lower_misaligned(const Product& p, LowerContext& ctx) {
  const Product tile{p.weights, p.x,      p.addend,
                     p.dst,     p.params, {"mmf", {{"tile_m", 64}, {"tile_n", 32}, {"split", 4}}}};
  return lower_tile(tile, ctx);
}

}  // namespace

Launches lower_mmsf_group(const Product& p, LowerContext& ctx) {
  const Tensor& w = p.weights;
  if (!rows_aligned(w, 16)) {
    return lower_misaligned(p, ctx);
  }
  Launches launches, after;
  const Config& c = p.choice.config;
  const int cols = c.at("cols"), groups = c.at("groups"), depth = c.at("depth"), parts = c.at("split"),
            share = c.at("share"), rows = groups * 64 * share;  // of a cluster
  const int stages = group_stages(cols, groups, depth, static_cast<int>(ctx.device().max_shared_bytes));
  const Dim3 grid{static_cast<uint32_t>((p.m() + rows - 1) / rows * share), 1,
                  grid_extent(std::min(p.batch(), kMaxGridYZ / parts) * parts)};
  KernelCall<GroupArgs> call({"mmsf/group.h", fmt::format("mmsf_group<{}, {}, {}, {}, {}, {}, {}>", type_text(w.type),
                                                          cols, groups, depth, stages, share, p.k() % depth == 0)},
                             grid, {static_cast<uint32_t>(group_threads(groups))},
                             static_cast<uint32_t>(group_shared_bytes(cols, groups, depth, stages)));
  set_weights(call, p, ctx);
  if (w.type == DType::f16) {
    const PackedTiles x = pack_tiles(p.x, parts, TileOrder::kNatural, ctx, launches);
    call.bind(call.args.x, x.tiles);
    call.bind(call.args.x_scale, x.scale);
  } else {
    call.bind(call.args.x, pack_bf16_tiles(p.x, ctx, launches));
  }
  call.args.parts = parts;
  if (parts == 1) {
    call.bind(call.args.dst, ctx.data(p.dst));
    set_epilogue(call, p, ctx);
  } else {
    call.bind(call.args.dst, add_parts(p, parts, ctx, after));
  }
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(fmt::format("mmsf_group {}", dtype_name(w.type))));
  std::move(after.begin(), after.end(), std::back_inserter(launches));
  return launches;
}

}  // namespace cudabk
