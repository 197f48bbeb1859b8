// mmq and mmf: tensor-core tiles, and the conversion of activations they share with library products.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "convert/args.h"
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

ConvertedRows convert_activations(const Tensor& x, DType to, int64_t k_padded, LowerContext& ctx, Launches& launches) {
  const int64_t rows = row_count(x);
  const int64_t data_bytes = (rows * k_padded * block_bytes(to) + 255) / 256 * 256;
  const int64_t scale_bytes = to == DType::f16 ? rows * 4 : 0;
  const auto memory = ctx.shared_scratch(x, fmt::format("{} {}", dtype_name(to), k_padded), data_bytes + scale_bytes);
  ConvertedRows result{memory.ref, to == DType::f16 ? memory.ref + data_bytes : BufferRef{}};
  if (!memory.fresh) {
    return result;
  }
  const bool vector = rows_aligned(x, 16) && x.ne[0] % 8 == 0 && k_padded % 8 == 0;
  KernelCall<ConvertArgs> call(
      {"convert/convert.h", fmt::format("convert_rows<{}, {}, {}>", type_text(x.type), type_text(to), vector)},
      {static_cast<uint32_t>(std::min<int64_t>(rows, 1 << 20))}, {256}, 32);
  set_activations(call, x, ctx);
  call.args.rows = rows;
  call.args.k_padded = static_cast<int32_t>(k_padded);
  call.bind(call.args.dst, result.data);
  if (to == DType::f16) {
    call.bind(call.args.scale, result.scale);
  }
  call.work().programmatic = true;
  launches.push_back(call.launch(fmt::format("convert {}", dtype_name(to))));
  return result;
}

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
