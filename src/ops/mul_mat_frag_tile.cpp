// frag_tile: weights in the `frag` layout times many columns, by warp groups (sm_90a).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "formats/frag_place.h"
#include "frag/tile_args.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

// Pieces of a part that a thread of the packing kernel holds: all of them up to 8.
int held_pieces(int64_t units, int parts) {
  const int64_t pieces = (units + parts - 1) / parts * (kFragDepth / 8);
  const int64_t wanted = (pieces + kPackTilesThreads - 1) / kPackTilesThreads;
  return wanted <= 1 ? 1 : (wanted <= 2 ? 2 : (wanted <= 4 ? 4 : 8));
}

}  // namespace

PackedTiles pack_tiles(const Tensor& x, int parts, TileOrder order, LowerContext& ctx, Launches& launches) {
  const int64_t n = x.ne[1], batch = x.ne[2] * x.ne[3];
  const int64_t units = frag_units(x.ne[0]), bytes = batch * ((n + 7) / 8) * units * 4 * kTileColumnsBytes;
  const bool frag = order == TileOrder::kFrag;
  const auto memory = ctx.shared_scratch(x, fmt::format("tiles of f16, {} parts{}", parts, frag ? ", as frag" : ""),
                                         bytes + batch * parts * n * 4);
  const PackedTiles result{memory.ref, memory.ref + bytes};
  if (!memory.fresh) {
    return result;
  }
  KernelCall<PackTilesArgs> call(
      {"frag/tile_columns.h",
       fmt::format("pack_tiles<{}, {}, {}>", rows_aligned(x, 16), held_pieces(units, parts), frag)},
      {static_cast<uint32_t>(n), static_cast<uint32_t>(parts), grid_extent(batch)}, {kPackTilesThreads}, 64);
  set_activations(call, x, ctx);
  call.args.batch = static_cast<int32_t>(batch);
  call.args.parts = parts;
  call.bind(call.args.tiles, result.tiles);
  call.bind(call.args.scale, result.scale);
  call.work().programmatic = true;
  launches.push_back(call.launch("pack_tiles"));
  return result;
}

BufferRef add_parts(const Product& p, int parts, LowerContext& ctx, Launches& after) {
  const int64_t total = p.m() * p.n() * p.batch();
  const BufferRef partial = ctx.scratch(total * parts * 4);
  const bool vector = p.m() % 4 == 0 && rows_aligned(p.dst, 16) && (p.addend == nullptr || rows_aligned(*p.addend, 16));
  const int elements = vector ? 4 : 1;
  KernelCall<AddTilePartsArgs> call(
      {"frag/tile_reduce.h", fmt::format("add_tile_parts<{}, {}>", parts, elements)},
      {static_cast<uint32_t>((total / elements + kTileReduceThreads - 1) / kTileReduceThreads)}, {kTileReduceThreads});
  call.args.total = total;
  call.args.m = p.m();
  call.args.n = p.n();
  call.bind(call.args.partial, partial);
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = true;
  after.push_back(call.launch("add_tile_parts"));
  return partial;
}

Launches lower_frag_tile(const Product& p, LowerContext& ctx) {
  Launches launches, after;
  const Tensor& w = p.weights;
  const FragView view = *frag_view(w);  // the family applies to nothing else
  const Config& c = p.choice.config;
  const int cols = c.at("cols"), groups = c.at("groups"), parts = c.at("split"), cluster = c.at("cluster"),
            rows = groups * 64;
  const int stages = frag_tile_stages(w.type, cols, groups, static_cast<int>(ctx.device().max_shared_bytes));
  const PackedTiles x = pack_tiles(p.x, parts, TileOrder::kFrag, ctx, launches);
  const Dim3 grid{static_cast<uint32_t>((p.m() + rows - 1) / rows), static_cast<uint32_t>((p.n() + cols - 1) / cols),
                  grid_extent(std::min(p.batch(), kMaxGridYZ / parts) * parts)};
  KernelCall<FragTileArgs> call(
      {"frag/tile.h", fmt::format("frag_tile<{}, {}, {}, {}, {}>", type_text(w.type), cols, groups, stages, cluster)},
      grid, {static_cast<uint32_t>(groups * 128 + 32)},
      static_cast<uint32_t>(frag_tile_shared_bytes(w.type, cols, groups, stages)));
  set_frag_weights(call, p, view, ctx);
  call.args.factor_stride2 = view.factor_stride2;
  call.args.factor_stride3 = view.factor_stride3;
  call.bind(call.args.row_factor, ctx.stored(w.root()) + view.factor_offset);
  call.bind(call.args.x, x.tiles);
  call.bind(call.args.x_scale, x.scale);
  call.args.parts = parts;
  if (parts == cluster) {
    call.bind(call.args.dst, ctx.data(p.dst));
    set_epilogue(call, p, ctx);
  } else {
    call.bind(call.args.dst, add_parts(p, parts / cluster, ctx, after));
  }
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(fmt::format("{} {}", p.choice.family, dtype_name(w.type))));
  std::move(after.begin(), after.end(), std::back_inserter(launches));
  return launches;
}

}  // namespace cudabk
