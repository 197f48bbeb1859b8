// mmvq and mmvf: few columns, bound by reading the weights.
#include <fmt/format.h>

#include "mmvf/args.h"
#include "mmvq/args.h"
#include "ops/mul_mat_lowering.h"
#include "quantize/args.h"

namespace cudabk {
namespace {

constexpr int kQuantizeElementsPerBlock = 512;  // kernel: 128 threads of 4 elements

// Columns a block computes: the smallest compiled count that holds n, at most 8 (kernel instances).
int columns_per_block(int64_t n) {
  for (const int cols : {1, 2, 4}) {
    if (n <= cols) {
      return cols;
    }
  }
  return 8;
}

Dim3 vector_grid(const Product& p, int rows, int cols) {
  return {static_cast<uint32_t>((p.m() + rows - 1) / rows), static_cast<uint32_t>((p.n() + cols - 1) / cols),
          grid_extent(p.batch())};
}

struct QuantizedRows {
  BufferRef codes, scales;
};

// In the order of the weight type's slices; shared by all products of `x` with weights of that type.
QuantizedRows quantize_activations(const Tensor& x, DType weights, LowerContext& ctx, Launches& launches) {
  const SliceShape shape = slice_shape(weights);
  const int64_t rows = row_count(x), k = x.ne[0];
  const int64_t code_bytes = (rows * activation_code_bytes(shape, k) + 255) / 256 * 256;
  const int64_t scale_bytes = rows * activation_scales(shape, k) * static_cast<int64_t>(sizeof(ActivationScale));
  const auto memory = ctx.shared_scratch(x, fmt::format("bytes for {}", dtype_name(weights)), code_bytes + scale_bytes);
  const QuantizedRows result{memory.ref, memory.ref + code_bytes};
  if (!memory.fresh) {
    return result;
  }
  const Dim3 grid{static_cast<uint32_t>((k + kQuantizeElementsPerBlock - 1) / kQuantizeElementsPerBlock),
                  grid_extent(rows)};
  KernelCall<QuantizeArgs> call(
      {"quantize/quantize.h", fmt::format("quantize<{}, {}>", type_text(weights), rows_aligned(x, 16))}, grid,
      {kQuantizeElementsPerBlock / 4});
  set_activations(call, x, ctx);
  call.args.rows = rows;
  call.bind(call.args.codes, result.codes);
  call.bind(call.args.scales, result.scales);
  call.work().programmatic = true;
  launches.push_back(call.launch("quantize"));
  return result;
}

}  // namespace

Launches lower_mmvq(const Product& p, LowerContext& ctx) {
  Launches launches;
  const QuantizedRows x = quantize_activations(p.x, p.weights.type, ctx, launches);
  const int warps = p.choice.config.at("warps"), rows = p.choice.config.at("rows"), cols = columns_per_block(p.n());
  const Tensor& w = p.weights;
  KernelCall<MmvqArgs> call({"mmvq/mmvq.h", fmt::format("mmvq<{}, {}, {}, {}>", type_text(w.type), cols, warps, rows)},
                            vector_grid(p, rows, cols), {static_cast<uint32_t>(warps * 32)},
                            vector_shared_bytes(warps, rows, cols));
  set_weights(call, p, ctx);
  call.bind(call.args.codes, x.codes);
  call.bind(call.args.scales, x.scales);
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(fmt::format("mmvq {}", dtype_name(w.type))));
  return launches;
}

Launches lower_mmvf(const Product& p, LowerContext& ctx) {
  const int warps = p.choice.config.at("warps"), rows = p.choice.config.at("rows"), cols = columns_per_block(p.n());
  const Tensor& w = p.weights;
  const bool vector = rows_aligned(w, 16) && rows_aligned(p.x, 16) && p.k() % 8 == 0;
  KernelCall<MmvfArgs> call({"mmvf/mmvf.h", fmt::format("mmvf<{}, {}, {}, {}, {}, {}>", type_text(w.type),
                                                        type_text(p.x.type), cols, warps, rows, vector ? 8 : 1)},
                            vector_grid(p, rows, cols), {static_cast<uint32_t>(warps * 32)},
                            vector_shared_bytes(warps, rows, cols));
  set_weights(call, p, ctx);
  call.args.x_col_stride = p.x.nb[1];
  call.args.x_stride2 = p.x.nb[2];
  call.args.x_stride3 = p.x.nb[3];
  call.bind(call.args.x, ctx.data(p.x));
  call.bind(call.args.dst, ctx.data(p.dst));
  set_epilogue(call, p, ctx);
  call.work().programmatic = true;
  return {call.launch(fmt::format("mmvf {}", dtype_name(w.type)))};
}

}  // namespace cudabk
