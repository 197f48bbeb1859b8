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

bool rows_in_vectors(const Product& p) {
  return rows_aligned(p.weights, 16) && rows_aligned(p.x, 16) && p.k() % 8 == 0;
}

// One variant of the kernel and what its launch has to know.
struct Variant {
  KernelKey kernel;
  int warps, chunks, blocks;  // blocks of an SM
  int shared_bytes;

  int64_t held() const { return static_cast<int64_t>(warps) * chunks * kMmsfChunk; }
};

Launches launch_variant(const Product& p, const Variant& v, LowerContext& ctx) {
  const int splits = static_cast<int>((p.k() + v.held() - 1) / v.held());
  const int64_t strips = (p.m() + kMmsfRows - 1) / kMmsfRows;
  const int64_t room = static_cast<int64_t>(ctx.device().sm_count) * v.blocks;
  const int64_t groups = std::clamp<int64_t>(room / splits, 1, strips);
  KernelCall<MmsfArgs> call(v.kernel, {static_cast<uint32_t>(groups * splits), 1, grid_extent(p.batch())},
                            {static_cast<uint32_t>(v.warps * 32)}, static_cast<uint32_t>(v.shared_bytes));
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
  call.work().programmatic = weights_are_constant(p.weights);
  Launches launches{call.launch(fmt::format("mmsf {}", dtype_name(p.weights.type)))};
  std::move(after.begin(), after.end(), std::back_inserter(launches));
  return launches;
}

Launches lower_registers(const Product& p, int warps, int chunks, int blocks, LowerContext& ctx) {
  const int tiles = mmsf_tiles(p.n());
  Variant v{{}, warps, chunks, blocks, mmsf_shared_bytes(warps, tiles)};
  const std::string_view access = !rows_in_vectors(p) ? "kElements" : (p.k() % v.held() == 0 ? "kWhole" : "kVector");
  v.kernel = {"mmsf/mmsf.h", fmt::format("mmsf<{}, {}, {}, {}, {}, {}, MmsfAccess::{}>", type_text(p.weights.type),
                                         type_text(p.x.type), tiles, chunks, warps, blocks, access)};
  return launch_variant(p, v, ctx);
}

}  // namespace

Launches lower_mmsf(const Product& p, LowerContext& ctx) {
  const Config& c = p.choice.config;
  // Single elements need more registers.
  return lower_registers(p, c.at("warps"), rows_in_vectors(p) ? c.at("chunks") : 2, c.at("blocks"), ctx);
}

Launches lower_mmsf_ring(const Product& p, LowerContext& ctx) {
  if (!rows_in_vectors(p)) {
    return lower_registers(p, 8, 2, 1, ctx);  // copies into the ring are of 16 bytes at least
  }
  const Config& c = p.choice.config;
  const int tiles = mmsf_tiles(p.n()), warps = c.at("warps"), chunks = c.at("chunks"), stage = c.at("stage"),
            slots = c.at("slots");
  Variant v{{}, warps, chunks, 1, mmsf_ring_shared_bytes(warps, tiles, stage, slots)};
  v.kernel = {"mmsf/ring.h",
              fmt::format("mmsf_ring<{}, {}, {}, {}, {}, {}, {}, {}>", type_text(p.weights.type), type_text(p.x.type),
                          tiles, chunks, warps, stage, slots, p.k() % v.held() == 0)};
  return launch_variant(p, v, ctx);
}

}  // namespace cudabk
