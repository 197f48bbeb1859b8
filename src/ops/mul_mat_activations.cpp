// Activations as dense rows of another float type, for tensor-core tiles and library products.
#include <fmt/format.h>

#include <algorithm>

#include "convert/narrow_args.h"
#include "ops/mul_mat_lowering.h"

namespace cudabk {
namespace {

int64_t narrow_pieces(int64_t k) { return (k + kNarrowPiece - 1) / kNarrowPiece; }

// Dense f32 rows without padding become 16 bits in one pass.
bool can_narrow(const Tensor& x, DType to, int64_t k_padded) {
  return x.type == DType::f32 && to != DType::f32 && k_padded == x.ne[0] && x.ne[0] % 4 == 0 && rows_aligned(x, 16) &&
         row_count(x) * narrow_pieces(x.ne[0]) < INT32_MAX;
}

KernelCall<ConvertArgs> narrow_call(const Tensor& x, DType to) {
  const int64_t rows = row_count(x), k = x.ne[0];
  if (to == DType::f16) {
    return {{"convert/narrow.h", fmt::format("narrow_rows<{}, {}>", type_text(to), narrow_runs(k))},
            {static_cast<uint32_t>(rows)},
            {kNarrowRowThreads},
            kNarrowRowThreads / 32 * 4};
  }
  return {{"convert/narrow.h", fmt::format("narrow_pieces<{}>", type_text(to))},
          {static_cast<uint32_t>(rows * narrow_pieces(k))},
          {kNarrowPieceThreads}};
}

KernelCall<ConvertArgs> convert_call(const Tensor& x, DType to, int64_t k_padded) {
  const bool vector = rows_aligned(x, 16) && x.ne[0] % 8 == 0 && k_padded % 8 == 0;
  return {{"convert/convert.h", fmt::format("convert_rows<{}, {}, {}>", type_text(x.type), type_text(to), vector)},
          {static_cast<uint32_t>(std::min<int64_t>(row_count(x), 1 << 20))},
          {256},
          32};
}

}  // namespace

ConvertedRows convert_activations(const Tensor& x, DType to, int64_t k_padded, LowerContext& ctx, Launches& launches) {
  const int64_t rows = row_count(x);
  const int64_t data_bytes = (rows * k_padded * block_bytes(to) + 255) / 256 * 256;
  const int64_t scale_bytes = to == DType::f16 ? rows * 4 : 0;
  const auto memory = ctx.shared_scratch(x, fmt::format("{} {}", dtype_name(to), k_padded), data_bytes + scale_bytes);
  const ConvertedRows result{memory.ref, to == DType::f16 ? memory.ref + data_bytes : BufferRef{}};
  if (!memory.fresh) {
    return result;
  }
  const bool narrow = can_narrow(x, to, k_padded);
  KernelCall<ConvertArgs> call = narrow ? narrow_call(x, to) : convert_call(x, to, k_padded);
  set_activations(call, x, ctx);
  call.args.rows = rows;
  call.args.k_padded = static_cast<int32_t>(k_padded);
  call.bind(call.args.dst, result.data);
  if (to == DType::f16) {
    call.bind(call.args.scale, result.scale);
  }
  call.work().programmatic = true;
  launches.push_back(call.launch(fmt::format("{} {}", narrow ? "narrow" : "convert", dtype_name(to))));
  return result;
}

}  // namespace cudabk
