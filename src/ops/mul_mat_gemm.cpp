// dequant_gemm, blas and blas_batched: operands brought to one float type, then a library product.
#include <fmt/format.h>

#include <algorithm>

#include "convert/args.h"
#include "formats/frag_place.h"
#include "formats/slices.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

// A matrix stack in memory: [inner, rows] with batch strides, all in bytes.
struct Operand {
  BufferRef data;
  DType type = DType::f32;
  int64_t row_stride = 0, stride2 = 0, stride3 = 0;
  int64_t ne2 = 1, ne3 = 1;

  bool regular() const { return ne2 == 1 || ne3 == 1 || stride3 == stride2 * ne2; }
  int64_t batch_stride() const { return ne2 == 1 ? stride3 : stride2; }  // of a regular stack
};

Operand in_place(const Tensor& t, LowerContext& ctx) {
  return {ctx.data(t), t.type, t.nb[1], t.nb[2], t.nb[3], t.ne[2], t.ne[3]};
}

Operand dense_operand(BufferRef data, DType type, const Tensor& shape) {
  const int64_t row = shape.ne[0] * block_bytes(type);
  return {data, type, row, row * shape.ne[1], row * shape.ne[1] * shape.ne[2], shape.ne[2], shape.ne[3]};
}

// The element type both operands are brought to.
DType gemm_type(const Product& p, const DeviceInfo& device) {
  if (p.params.precision == Precision::kF32) {
    return DType::f32;
  }
  if (is_quantized(p.weights.type)) {
    return device.cc >= 80 ? DType::bf16 : DType::f32;  // bf16 has the range of f32, unlike f16
  }
  return p.weights.type == DType::bf16 && device.cc < 80 ? DType::f32 : p.weights.type;
}

Operand dequantized_frag_weights(const Product& p, const FragView& view, DType to, LowerContext& ctx,
                                 Launches& launches) {
  const Tensor& w = p.weights;
  const BufferRef data = ctx.scratch(element_count(w) * block_bytes(to));
  const int64_t count = frag_strips(w.ne[1]) * view.units * w.ne[2] * w.ne[3];
  KernelCall<DequantizeFragArgs> call(
      {"frag/repack.h", fmt::format("dequantize_frag<{}, {}>", type_text(w.type), type_text(to))},
      {static_cast<uint32_t>(std::min<int64_t>(count, INT32_MAX))}, {kRepackThreads},
      static_cast<uint32_t>(dequantize_frag_shared_bytes(w.type, block_bytes(to))));
  call.args.stride2 = view.stride2;
  call.args.stride3 = view.stride3;
  call.args.a2 = static_cast<int32_t>(w.ne[2]);
  call.args.m = static_cast<int32_t>(w.ne[1]);
  call.args.k = static_cast<int32_t>(w.ne[0]);
  call.args.units = view.units;
  call.args.count = count;
  call.bind(call.args.weights, ctx.stored(w.root()) + view.offset);
  call.bind(call.args.dst, data);
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(fmt::format("dequantize {} frag", dtype_name(w.type))));
  return dense_operand(data, to, w);
}

Operand dequantized_weights(const Product& p, DType to, LowerContext& ctx, Launches& launches) {
  if (const std::optional<FragView> view = frag_view(p.weights)) {
    return dequantized_frag_weights(p, *view, to, ctx, launches);
  }
  constexpr int kThreads = 256;  // one slice each, staged in shared memory
  const Tensor& w = p.weights;
  const int64_t rows = row_count(w);
  const BufferRef data = ctx.scratch(rows * w.ne[0] * block_bytes(to));
  const int64_t slices = w.ne[0] / slice_shape(w.type).elements();
  const Dim3 grid{static_cast<uint32_t>((slices + kThreads - 1) / kThreads), grid_extent(rows)};
  KernelCall<DequantizeArgs> call(
      {"convert/convert.h", fmt::format("dequantize<{}, {}>", type_text(w.type), type_text(to))}, grid, {kThreads},
      static_cast<uint32_t>(kThreads * slice_shape(w.type).elements() * block_bytes(to)));
  call.args.row_stride = w.nb[1];
  call.args.stride2 = w.nb[2];
  call.args.stride3 = w.nb[3];
  call.args.m = w.ne[1];
  call.args.a2 = w.ne[2];
  call.args.rows = rows;
  call.args.k = static_cast<int32_t>(w.ne[0]);
  call.bind(call.args.weights, ctx.data(w));
  call.bind(call.args.dst, data);
  call.work().programmatic = weights_are_constant(w);
  launches.push_back(call.launch(fmt::format("dequantize {}", dtype_name(w.type))));
  return dense_operand(data, to, w);
}

Launch scale_columns(const Product& p, BufferRef scale, LowerContext& ctx) {
  const int64_t columns = p.n() * p.batch();
  KernelCall<ScaleColumnsArgs> call({"convert/convert.h", "scale_columns<256>"},
                                    {static_cast<uint32_t>(std::min<int64_t>(columns, 1 << 20))}, {256});
  call.args.m = p.m();
  call.args.columns = columns;
  call.bind(call.args.dst, ctx.data(p.dst));
  call.bind(call.args.scale, scale);
  return call.launch("scale_columns");
}

// Address arrays in scratch, filled by a kernel: for batches that broadcast or are irregularly spaced.
BufferRef pointer_arrays(const Product& p, const Operand& w, const Operand& x, LowerContext& ctx, Launches& launches) {
  constexpr int kThreads = 128;
  const BufferRef pointers = ctx.scratch(3 * p.batch() * static_cast<int64_t>(sizeof(void*)));
  KernelCall<GemmPointersArgs> call({"convert/convert.h", fmt::format("gemm_pointers<{}>", kThreads)},
                                    {static_cast<uint32_t>((p.batch() + kThreads - 1) / kThreads)}, {kThreads});
  const BatchArgs batch = p.batch_args();
  call.args.a_stride2 = w.stride2;
  call.args.a_stride3 = w.stride3;
  call.args.b_stride2 = x.stride2;
  call.args.b_stride3 = x.stride3;
  call.args.c_stride = p.m() * p.n() * 4;
  call.args.b2 = batch.b2;
  call.args.ratio2 = batch.ratio2;
  call.args.ratio3 = batch.ratio3;
  call.args.batch = batch.batch;
  call.bind(call.args.a, w.data);
  call.bind(call.args.b, x.data);
  call.bind(call.args.c, ctx.data(p.dst));
  call.bind(call.args.pointers, pointers);
  launches.push_back(call.launch("gemm_pointers"));
  return pointers;
}

Launch gemm_launch(const Product& p, const Operand& w, const Operand& x, LowerContext& ctx, Launches& launches) {
  const int64_t size = block_bytes(w.type);
  GemmWork gemm;
  GemmCall& c = gemm.call;
  c.type_ab = w.type;
  c.type_c = DType::f32;
  c.allow_tf32 = p.params.precision == Precision::kDefault;
  const auto algo = p.choice.config.find("algo");
  c.algo = algo == p.choice.config.end() ? 0 : algo->second;
  c.m = p.m();
  c.n = p.n();
  c.k = p.k();
  c.lda = std::max(p.k(), w.row_stride / size);
  c.ldb = std::max(p.k(), x.row_stride / size);
  c.ldc = p.m();
  c.batch = p.batch();
  const bool broadcast = w.ne2 * w.ne3 != p.batch();
  if (p.batch() == 1 || (!broadcast && w.regular() && x.regular())) {
    c.stride_a = w.batch_stride() / size;
    c.stride_b = x.batch_stride() / size;
    c.stride_c = p.m() * p.n();
    gemm.a = w.data;
    gemm.b = x.data;
    gemm.c = ctx.data(p.dst);
  } else {
    const BufferRef pointers = pointer_arrays(p, w, x, ctx, launches);
    c.pointer_arrays = true;
    gemm.a = pointers;
    gemm.b = pointers + p.batch() * static_cast<int64_t>(sizeof(void*));
    gemm.c = pointers + 2 * p.batch() * static_cast<int64_t>(sizeof(void*));
  }
  return {fmt::format("gemm {}", dtype_name(w.type)), gemm};
}

}  // namespace

Launches lower_gemm(const Product& p, LowerContext& ctx) {
  Launches launches;
  const DType type = gemm_type(p, ctx.device());
  Operand w;
  if (is_quantized(p.weights.type)) {
    w = dequantized_weights(p, type, ctx, launches);
  } else if (p.weights.type != type) {
    w = dense_operand(convert_activations(p.weights, type, p.k(), ctx, launches).data, type, p.weights);
  } else {
    w = in_place(p.weights, ctx);
  }
  ConvertedRows converted;
  const bool convert_x = p.x.type != type;
  if (convert_x) {
    converted = convert_activations(p.x, type, p.k(), ctx, launches);
  }
  const Operand x = convert_x ? dense_operand(converted.data, type, p.x) : in_place(p.x, ctx);
  Launch gemm = gemm_launch(p, w, x, ctx, launches);
  launches.push_back(std::move(gemm));
  if (convert_x && type == DType::f16) {
    launches.push_back(scale_columns(p, converted.scale, ctx));
  }
  return launches;
}

}  // namespace cudabk
