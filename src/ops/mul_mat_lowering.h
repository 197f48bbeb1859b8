// Lowering of mul_mat, one function per way of computing it. Internal to src/ops.
#pragma once

#include "mmvq/args.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat.h"
#include "ops/op_def.h"

namespace cudabk {

// A product being lowered. `dst` is where the result goes: the product itself, or the sum it is fused with.
struct Product {
  const Tensor& weights;
  const Tensor& x;
  const Tensor* addend;  // nullptr: none
  const Tensor& dst;
  MulMatParams params;
  Choice choice;

  int64_t m() const { return weights.ne[1]; }
  int64_t n() const { return x.ne[1]; }
  int64_t k() const { return weights.ne[0]; }
  int64_t batch() const { return x.ne[2] * x.ne[3]; }
  BatchArgs batch_args() const {
    const auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };  // checked by the families
    return {narrow(batch()), narrow(x.ne[2]), narrow(x.ne[2] / weights.ne[2]), narrow(x.ne[3] / weights.ne[3])};
  }
};

using Launches = std::vector<Launch>;

Launches lower_mmvq(const Product& p, LowerContext& ctx);
Launches lower_mmvf(const Product& p, LowerContext& ctx);
Launches lower_mmsf(const Product& p, LowerContext& ctx);
Launches lower_mmsf_ring(const Product& p, LowerContext& ctx);
Launches lower_mmsf_group(const Product& p, LowerContext& ctx);
Launches lower_tile(const Product& p, LowerContext& ctx);  // mmq and mmf
Launches lower_frag_vector(const Product& p, LowerContext& ctx);
Launches lower_frag_ring(const Product& p, LowerContext& ctx);
Launches lower_frag_wide(const Product& p, LowerContext& ctx);
Launches lower_frag_direct(const Product& p, LowerContext& ctx);
Launches lower_frag_tile(const Product& p, LowerContext& ctx);
Launches lower_gemm(const Product& p, LowerContext& ctx);  // dequant_gemm, blas and blas_batched

// ---- shared pieces ----

// Scratch for the partial sums of `splits` parts of k, [splits][batch][n][m], and in `after` the launch that adds them
// (and the addend) into the result.
BufferRef add_reduce(const Product& p, LowerContext& ctx, int splits, Launches& after);

// "DType::q4_K": a type as it stands in a kernel's template-id.
std::string type_text(DType type);
// Largest grid extent in y and z (hardware).
constexpr int64_t kMaxGridYZ = 65535;
uint32_t grid_extent(int64_t wanted);  // clamped to kMaxGridYZ; kernels loop over the rest

// Nothing in a plan writes these weights: a kernel that reads them may start before its predecessor has ended.
bool weights_are_constant(const Tensor& weights);

// Every row of `t` starts on a multiple of `bytes`.
bool rows_aligned(const Tensor& t, int64_t bytes);

// Fields of EpilogueArgs for the product's addend; binds its memory.
template <class Args>
void set_epilogue(KernelCall<Args>& call, const Product& p, LowerContext& ctx) {
  if (p.addend == nullptr) {
    return;
  }
  const bool broadcast = row_count(*p.addend) == 1 && row_count(p.dst) != 1;
  call.args.epilogue.column_stride = broadcast ? 0 : p.m();
  call.args.epilogue.batch_stride = broadcast ? 0 : p.m() * p.n();
  call.bind(call.args.epilogue.addend, ctx.data(*p.addend));
}

// Batch, extents and weights of a product kernel's arguments; binds the weights.
template <class Args>
void set_weights(KernelCall<Args>& call, const Product& p, LowerContext& ctx) {
  call.args.batch = p.batch_args();
  call.args.row_stride = p.weights.nb[1];
  call.args.stride2 = p.weights.nb[2];
  call.args.stride3 = p.weights.nb[3];
  call.args.m = static_cast<int32_t>(p.m());
  call.args.n = static_cast<int32_t>(p.n());
  call.args.k = static_cast<int32_t>(p.k());
  call.bind(call.args.weights, ctx.data(p.weights));
}

// The same of weights in the `frag` layout, read in place; `view` is theirs.
template <class Args>
void set_frag_weights(KernelCall<Args>& call, const Product& p, const FragView& view, LowerContext& ctx) {
  call.args.batch = p.batch_args();
  call.args.stride2 = view.stride2;
  call.args.stride3 = view.stride3;
  call.args.m = static_cast<int32_t>(p.m());
  call.args.n = static_cast<int32_t>(p.n());
  call.args.units = view.units;
  call.bind(call.args.weights, ctx.stored(p.weights.root()) + view.offset);
}

// Strides and extents of the activations in the arguments of a kernel that converts them; binds them.
template <class Args>
void set_activations(KernelCall<Args>& call, const Tensor& x, LowerContext& ctx) {
  Args& a = call.args;
  a.nb1 = x.nb[1];
  a.nb2 = x.nb[2];
  a.nb3 = x.nb[3];
  a.n = static_cast<decltype(a.n)>(x.ne[1]);
  a.b2 = static_cast<decltype(a.b2)>(x.ne[2]);
  a.k = static_cast<decltype(a.k)>(x.ne[0]);
  call.bind(a.x, ctx.data(x));
}

// The activations as dense [rows][k_padded] of `to` in scratch shared over the plan; adds the converting launch at
// first use. f16 destinations also get one scale per row (scale.index < 0 otherwise).
struct ConvertedRows {
  BufferRef data;
  BufferRef scale;
};
ConvertedRows convert_activations(const Tensor& x, DType to, int64_t k_padded, LowerContext& ctx, Launches& launches);

// For products by warp groups: the activations as f16 tiles with a scale per column and part of k (PackTilesArgs) in
// scratch, shared by all products of `x` with as many parts and the same order; adds the converting launch at first
// use.
struct PackedTiles {
  BufferRef tiles, scale;
};
enum class TileOrder : uint8_t { kNatural, kFrag };  // of elements in a step of 16
PackedTiles pack_tiles(const Tensor& x, int parts, TileOrder order, LowerContext& ctx, Launches& launches);
// Scratch for the sums of `parts` parts of k, [parts][batch][n][m], and in `after` the launch that adds them (and the
// addend) into the result.
BufferRef add_parts(const Product& p, int parts, LowerContext& ctx, Launches& after);

}  // namespace cudabk
