// mmq and mmf: tensor-core tiles.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ops/mul_mat_lowering.h"
#include "tile/args.h"

namespace cudabk {
namespace {

constexpr int kReduceThreads = 256;
constexpr int64_t kReduceBlocks = 2048;  // enough for any device; the kernel loops

}  // namespace

BufferRef add_reduce(const Product& p, LowerContext& ctx, int splits, Launches& after) {
  const int64_t elements = p.m() * p.n() * p.batch();
  const BufferRef partial = ctx.scratch(elements * splits * 4);
  const int64_t blocks = std::min(kReduceBlocks, (elements + kReduceThreads - 1) / kReduceThreads);
  KernelCall<ReduceSplitsArgs> call({"tile/tile.h", fmt::format("reduce_splits<{}>", kReduceThreads)},
                                    {static_cast<uint32_t>(blocks)}, {kReduceThreads});
  call.args.m = p.m();
  call.args.n = p.n();
  call.args.batch = p.batch();
  call.args.splits = splits;
  call.bind(call.args.partial, partial);
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = true;
  after.push_back(call.launch("reduce_splits"));
  return partial;
}

namespace {

std::string tile_entry(const Product& p, int tile_m, int tile_n) {
  const DType type = p.weights.type;
  if (is_quantized(type)) {
    return fmt::format("mmq<{}, {}, {}>", type_text(type), tile_m, tile_n);
  }
  const bool vector = rows_aligned(p.weights, 16) && p.k() % 16 == 0;
  return fmt::format("mmf<{}, {}, {}, {}>", type_text(type), tile_m, tile_n, vector);
}

}  // namespace

Launches lower_tile(const Product& p, LowerContext& ctx) {
  Launches launches, after;
  const int tile_m = p.choice.config.at("tile_m"), tile_n = p.choice.config.at("tile_n");
  const int step = tile_k_step(p.weights.type);
  const int64_t k_padded = (p.k() + step - 1) / step * step;
  const int splits = static_cast<int>(std::min<int64_t>(p.choice.config.at("split"), k_padded / step));
  const ConvertedRows x = convert_activations(p.x, DType::bf16, k_padded, ctx, launches);
  const Dim3 grid{static_cast<uint32_t>((p.m() + tile_m - 1) / tile_m),
                  static_cast<uint32_t>((p.n() + tile_n - 1) / tile_n), grid_extent(p.batch() * splits)};
  KernelCall<TileArgs> call({"tile/tile.h", tile_entry(p, tile_m, tile_n)}, grid, {kTileThreads},
                            static_cast<uint32_t>(tile_shared_bytes(tile_m, tile_n, step)));
  set_weights(call, p, ctx);
  call.args.k_padded = static_cast<int32_t>(k_padded);
  call.args.splits = splits;
  call.bind(call.args.x, x.data);
  call.bind(call.args.dst, splits > 1 ? add_reduce(p, ctx, splits, after) : ctx.data(p.dst));
  if (splits == 1) {
    set_epilogue(call, p, ctx);
  }
  call.work().programmatic = weights_are_constant(p.weights);
  launches.push_back(call.launch(fmt::format("{} {}", p.choice.family, dtype_name(p.weights.type))));
  std::move(after.begin(), after.end(), std::back_inserter(launches));
  return launches;
}

}  // namespace cudabk
