// mmsf: 16-bit float weights streamed past activations in registers. One launch, and one more that adds the parts of k
// where k is longer than a block holds.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "mmsf/args.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

// Scratch for the partial sums, and in `after` the launch that adds them into the result.
BufferRef add_mmsf_reduce(const Product& p, LowerContext& ctx, int splits, Launches& after) {
  const int64_t total = p.m() * p.n() * p.batch();
  const BufferRef partial = ctx.scratch(total * splits * 4);
  const bool vector = p.m() % 4 == 0 && rows_aligned(p.dst, 16) && (p.addend == nullptr || rows_aligned(*p.addend, 4));
  const int64_t per_block = kMmsfReduceThreads * (vector ? 4 : 1);
  KernelCall<MmsfReduceArgs> call({"mmsf/mmsf.h", fmt::format("mmsf_reduce<{}>", vector)},
                                  {static_cast<uint32_t>((total + per_block - 1) / per_block)}, {kMmsfReduceThreads});
  call.args.m = p.m();
  call.args.n = p.n();
  call.args.total = total;
  call.args.splits = splits;
  call.bind(call.args.partial, partial);
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = true;
  after.push_back(call.launch("mmsf_reduce"));
  return partial;
}

}  // namespace

Launches lower_mmsf(const Product& p, LowerContext& ctx) {
  const Tensor& w = p.weights;
  const bool vector = rows_aligned(w, 16) && rows_aligned(p.x, 16) && p.k() % 8 == 0;
  const int warps = p.choice.config.at("warps"), blocks = p.choice.config.at("blocks"), tiles = mmsf_tiles(p.n());
  const int chunks = vector ? p.choice.config.at("chunks") : 2;  // single elements need more registers
  const int64_t held = static_cast<int64_t>(warps) * chunks * kMmsfChunk;
  const int splits = static_cast<int>((p.k() + held - 1) / held);
  const int64_t strips = (p.m() + kMmsfRows - 1) / kMmsfRows;
  const int64_t room = static_cast<int64_t>(ctx.device().sm_count) * blocks;
  const int64_t groups = std::clamp<int64_t>(room / splits, 1, strips);
  const std::string_view access = !vector ? "kElements" : (p.k() % held == 0 ? "kWhole" : "kVector");
  KernelCall<MmsfArgs> call(
      {"mmsf/mmsf.h", fmt::format("mmsf<{}, {}, {}, {}, {}, {}, MmsfAccess::{}>", type_text(w.type),
                                  type_text(p.x.type), tiles, chunks, warps, blocks, access)},
      {static_cast<uint32_t>(groups * splits), 1, grid_extent(p.batch())}, {static_cast<uint32_t>(warps * 32)},
      static_cast<uint32_t>(mmsf_shared_bytes(warps, tiles)));
  set_weights(call, p, ctx);
  call.args.x_col_stride = p.x.nb[1];
  call.args.x_stride2 = p.x.nb[2];
  call.args.x_stride3 = p.x.nb[3];
  call.args.splits = splits;
  call.bind(call.args.x, ctx.data(p.x));
  Launches after;
  call.bind(call.args.dst, splits > 1 ? add_mmsf_reduce(p, ctx, splits, after) : ctx.data(p.dst));
  if (splits == 1) {
    set_epilogue(call, p, ctx);
  }
  call.work().programmatic = weights_are_constant(w);
  Launches launches{call.launch(fmt::format("mmsf {}", dtype_name(w.type)))};
  std::move(after.begin(), after.end(), std::back_inserter(launches));
  return launches;
}

}  // namespace cudabk
