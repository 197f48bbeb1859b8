#include "ops/mul_mat_families.h"

#include <fmt/format.h>

#include "formats/slices.h"
#include "frag/tile_args.h"
#include "mmsf/args.h"
#include "mmsf/group_args.h"
#include "ops/frag_weights.h"
#include "ops/mul_mat.h"
#include "ops/mul_mat_lowering.h"
#include "tile/args.h"

namespace cudabk {
namespace {

DType weight_type(const Problem& p) {
  const auto type = parse_dtype(p.key);
  return type.ok() ? *type : DType::i8;  // i8 has no family
}

Support quantized_weights(const Problem& p) {
  const DType t = weight_type(p);
  return has_device_format(t) ? Support{} : Support::no(fmt::format("{} is not a quantized type with a kernel", p.key));
}
Support float_weights(const Problem& p) {
  return is_float(weight_type(p)) ? Support{} : Support::no(fmt::format("{} weights are not floats", p.key));
}

// For the kernels that read raw blocks; dequantize reads both layouts.
Support raw_quantized_weights(const Problem& p) {
  return p.dim("frag") == 0 ? quantized_weights(p) : Support::no("the weights are in the frag layout");
}
Support frag_layout(const Problem& p) {
  if (p.dim("frag") == 0) {
    return Support::no("the weights are not in the frag layout");
  }
  if (p.dim("x_f16") != 0) {
    return Support::no("the activations are f16");
  }
  if (p.dim("f32_precision") != 0) {
    return Support::no("f32 precision was requested, these kernels multiply in f16");
  }
  return {};
}

Support fits_shared(int shared, const DeviceInfo& d) {
  return shared <= d.max_shared_bytes ? Support{}
                                      : Support::no(fmt::format("needs {} bytes of shared memory, the device has {}",
                                                                shared, d.max_shared_bytes));
}

Support tile_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (d.cc < 80) {
    return Support::no(fmt::format("needs bf16 tensor cores (sm_80), the device is {}", d.arch));
  }
  if (p.dim("f32_precision") != 0) {
    return Support::no("f32 precision was requested, the tile kernel multiplies in bf16");
  }
  const int shared = tile_shared_bytes(c.at("tile_m"), c.at("tile_n"), tile_k_step(weight_type(p)));
  return fits_shared(shared, d);
}

Support mmvq_can_run(const Problem& p, const Config&, const DeviceInfo&) { return raw_quantized_weights(p); }
Support mmvf_can_run(const Problem& p, const Config&, const DeviceInfo&) { return float_weights(p); }

Support mmq_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  const Support s = raw_quantized_weights(p);
  return s ? tile_can_run(p, c, d) : s;
}
Support mmf_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  const Support s = float_weights(p);
  return s ? tile_can_run(p, c, d) : s;
}

// What the kernels for 16-bit floats have in common.
Support streamed_floats(const Problem& p, int64_t max_cols, const DeviceInfo& d) {
  const DType t = weight_type(p);
  if (t != DType::f16 && t != DType::bf16) {
    return Support::no(fmt::format("{} weights are not 16-bit floats", p.key));
  }
  if (d.cc < 80) {
    return Support::no(fmt::format("needs tensor cores of sm_80, the device is {}", d.arch));
  }
  if (p.dim("f32_precision") != 0) {
    return Support::no("f32 precision was requested, this kernel multiplies in the weights' type");
  }
  if (p.dim("n") > max_cols) {
    return Support::no(fmt::format("up to {} columns, the problem has {}", max_cols, p.dim("n")));
  }
  return {};
}

// Of mmsf's kernels: registers and shared memory they need and have.
Support streamed_fits(const Problem& p, int registers, int room, int shared, const DeviceInfo& d) {
  if (registers > room) {
    return Support::no(
        fmt::format("{} columns need about {} registers, there is room for {}", p.dim("n"), registers, room));
  }
  return shared <= d.max_shared_bytes ? Support{} : Support::no(fmt::format("needs {} bytes of shared memory", shared));
}

Support mmsf_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = streamed_floats(p, kMmsfMaxCols, d); !s) {
    return s;
  }
  const int tiles = mmsf_tiles(p.dim("n")), warps = c.at("warps");
  return streamed_fits(p, mmsf_registers(tiles, c.at("chunks")), mmsf_register_room(warps, c.at("blocks")),
                       mmsf_shared_bytes(warps, tiles), d);
}

Support mmsf_ring_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = streamed_floats(p, kMmsfRingMaxCols, d); !s) {
    return s;
  }
  const int tiles = mmsf_tiles(p.dim("n")), warps = c.at("warps"), chunks = c.at("chunks"), stage = c.at("stage");
  if (chunks % stage != 0) {
    return Support::no(fmt::format("{} chunks are not whole stages of {}", chunks, stage));
  }
  if (tiles > 2 && chunks > 4) {
    return Support::no("more than 16 columns leave no registers for 8 chunks");
  }
  return streamed_fits(p, mmsf_ring_registers(tiles, chunks, stage), mmsf_register_room(warps, 1),
                       mmsf_ring_shared_bytes(warps, tiles, stage, c.at("slots")), d);
}

// c: strips of a block, two at a time on an SM. Registers suffice for `warps_of_sm` warps.
Support frag_block_can_run(const Config& c, int warps_of_sm, int shared, const DeviceInfo& d) {
  if (c.at("warps") * (2 / c.at("strips")) > warps_of_sm) {
    return Support::no(fmt::format("registers suffice for {} warps of an SM", warps_of_sm));
  }
  return fits_shared(shared, d);
}
// Blocks of 4 warps are for devices whose shared memory holds no more rings.
constexpr int kSmallSharedBytes = 100 * 1024;
Support frag_rings_can_run(const Config& c, int warps_of_sm, int shared, const DeviceInfo& d) {
  if (c.at("warps") < 8 && d.max_shared_bytes > kSmallSharedBytes) {
    return Support::no("shared memory has room for more warps");
  }
  return frag_block_can_run(c, warps_of_sm, shared, d);
}

Support up_to_columns(const Problem& p, int columns) {
  if (const Support s = frag_layout(p); !s) {
    return s;
  }
  return p.dim("n") <= columns ? Support{}
                               : Support::no(fmt::format("up to {} columns, the problem has {}", columns, p.dim("n")));
}
// Two units of codes are held, and two of activations where packed ones are loaded ahead; unrolled, both stay until the
// other has come. What does not fit the registers of 16 warps an SM still fits those of 12: as compiled for sm_90a.
int frag_vector_warps_of_sm(FragShape s, int64_t n, const Config& c) {
  constexpr int kMany = 16, kFew = 12;
  const bool own = c.at("pack") == 0, two_strips = c.at("strips") == 2, one_column = n <= 1;
  const bool table = s.codes == FragCodes::kTable16, min = s.scale == FragScale::kHalfMin;
  const bool byte = s.scale == FragScale::kByte;
  if (s.all_words() == 6 || (s.has_book() && s.group == 16)) {
    return kFew;
  }
  if (s.has_book()) {
    return c.at("unroll") == 2 && !one_column && !own && two_strips ? kFew : kMany;
  }
  if (c.at("unroll") == 1) {
    const bool small = s.low_words() == 2 && s.high_words() != 0;  // of two planes, 3 bits
    const bool wide = own ? small || (two_strips && (s.all_words() != 4 || min)) : small && two_strips;
    return !one_column && wide ? kFew : kMany;
  }
  if (s.low_words() != 4) {
    return kFew;
  }
  if (one_column) {
    return (!own && (two_strips || table)) || (table && two_strips && byte) ? kFew : kMany;
  }
  return !own || s.all_words() != 4 || table || min || byte ? kFew : kMany;
}
Support frag_vector_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = up_to_columns(p, 2); !s) {
    return s;
  }
  if (c.at("pack") == 0 && (p.dim("k") % kFragDepth != 0 || p.dim("x_dense") == 0)) {
    return Support::no(fmt::format("packs k by {} elements of dense columns itself", kFragDepth));
  }
  const DType type = weight_type(p);
  const int strips = c.at("strips"), warps = c.at("warps") * strips;
  if (frag_shape(type).all_words() == 6 && c.at("unroll") == 2 && (p.dim("n") > 1 || c.at("pack") == 1)) {
    return Support::no("registers do not suffice for the unrolled loop");
  }
  const int limit = frag_vector_warps_of_sm(frag_shape(type), p.dim("n"), c);
  return frag_block_can_run({{"strips", strips}, {"warps", warps}}, limit,
                            frag_vector_shared_bytes(type, c.at("warps"), strips, d.code_cc()), d);
}
Support frag_ring_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = up_to_columns(p, 4); !s) {
    return s;
  }
  const int cols = frag_narrow_columns(p.dim("n")), strips = c.at("strips");
  const FragShape shape = frag_shape(weight_type(p));
  const bool book = shape.has_book() && cols > 1, planes = shape.high_bits != 0 && cols == 4;
  const bool many_scales = strips == 2 && shape.group == 16 && (book || planes);
  return frag_rings_can_run(c, many_scales ? 8 : 16,
                            frag_ring_shared_bytes(weight_type(p), cols, strips, c.at("warps"), c.at("stages")), d);
}
Support eight_columns_a_block(const Problem& p) {
  if (const Support s = frag_layout(p); !s) {
    return s;
  }
  return p.dim("n") <= 8 * kMaxGridYZ ? Support{} : Support::no("more columns than a grid has");
}
Support frag_wide_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = eight_columns_a_block(p); !s) {
    return s;
  }
  if (c.at("tiles") == 2 && p.dim("n") <= 8) {
    return Support::no("one tile of 8 columns is enough");
  }
  const int shared =
      frag_wide_shared_bytes(weight_type(p), c.at("tiles"), c.at("strips"), c.at("warps"), c.at("stages"));
  const int warps_of_sm = c.at("tiles") == 1 ? 16 : (has_frag_lookup(weight_type(p)) ? 8 : 12);
  return frag_rings_can_run(c, warps_of_sm, shared, d);
}

Support frag_direct_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = eight_columns_a_block(p); !s) {
    return s;
  }
  const int shared = frag_wide_rings_place(weight_type(p), 1, 1, c.at("warps"));
  return frag_block_can_run({{"strips", 1}, {"warps", c.at("warps")}}, 12, shared, d);
}

// cluster: blocks that work together.
Support warp_groups(int cluster, const DeviceInfo& d) {
  if (d.arch != "sm_90a") {
    return Support::no(fmt::format("needs warp-group products of sm_90a, the device is {}", d.arch));
  }
  return cluster > 1 && d.emulated ? Support::no("clusters of blocks are not emulated") : Support{};
}
Support frag_tile_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = frag_layout(p); !s) {
    return s;
  }
  if (const Support s = warp_groups(c.at("cluster"), d); !s) {
    return s;
  }
  if (p.dim("n") <= c.at("cols") / 4 || p.dim("n") > c.at("cols") * 16) {
    return Support::no(fmt::format("blocks of {} columns are for {} to {}, the problem has {}", c.at("cols"),
                                   c.at("cols") / 4 + 1, c.at("cols") * 16, p.dim("n")));
  }
  if (c.at("groups") == 4 && c.at("cols") > 32) {
    return Support::no("16 warps leave no registers for the sums of more than 32 columns");
  }
  if (c.at("cluster") > c.at("split")) {
    return Support::no("a cluster shares parts of k, there is only one");
  }
  if (frag_tile_stages(weight_type(p), c.at("cols"), c.at("groups"), d.max_shared_bytes) == 0) {
    return Support::no(fmt::format("two stages do not fit into {} bytes of shared memory", d.max_shared_bytes));
  }
  return {};
}

Support mmsf_group_can_run(const Problem& p, const Config& c, const DeviceInfo& d) {
  if (const Support s = streamed_floats(p, kGroupMaxCols, d); !s) {
    return s;
  }
  if (const Support s = warp_groups(c.at("share"), d); !s) {
    return s;
  }
  if (p.dim("x_f16") != 0) {
    return Support::no("the activations are f16");
  }
  if (p.dim("w_dense") == 0 || p.dim("k") % 8 != 0) {
    return Support::no("rows of the weights do not follow each other on multiples of 16 bytes");
  }
  if (p.dim("n") > c.at("cols") || p.dim("n") <= c.at("cols") / 4) {
    return Support::no(fmt::format("blocks of {} columns are for {} to {}, the problem has {}", c.at("cols"),
                                   c.at("cols") / 4 + 1, c.at("cols"), p.dim("n")));
  }
  if (group_stages(c.at("cols"), c.at("groups"), c.at("depth"), static_cast<int>(d.max_shared_bytes)) == 0) {
    return Support::no(fmt::format("two stages do not fit into {} bytes of shared memory", d.max_shared_bytes));
  }
  return {};
}

Support dequant_gemm_can_run(const Problem& p, const Config&, const DeviceInfo&) { return quantized_weights(p); }

Support blas_can_run(const Problem& p, const Config&, const DeviceInfo&) {
  if (p.dim("batch") != 1) {
    return Support::no(fmt::format("one product only, the problem has {}", p.dim("batch")));
  }
  return float_weights(p);
}
Support blas_batched_can_run(const Problem& p, const Config&, const DeviceInfo&) { return float_weights(p); }

const std::vector<ConfigParam> kMmvqParams = {{"warps", {1, 2, 4, 8}, 4}, {"rows", {1, 2, 4}, 2}};
const std::vector<ConfigParam> kMmvfParams = {{"warps", {1, 2, 4, 8}, 4}, {"rows", {1, 2, 4}, 2}};
const std::vector<ConfigParam> kMmsfParams = {{"warps", {8, 16}, 8}, {"chunks", {2, 4, 8}, 2}, {"blocks", {1, 2}, 1}};
// Chunks and stage: of 32 elements of k.
const std::vector<ConfigParam> kMmsfRingParams = {
    {"warps", {8, 16}, 8}, {"chunks", {4, 8}, 4}, {"stage", {2, 4}, 4}, {"slots", {2, 3, 4}, 2}};
// pack: 1: activations are packed by a kernel of their own.
const std::vector<ConfigParam> kFragVectorParams = {
    {"warps", {6, 8}, 6}, {"strips", {1, 2}, 1}, {"unroll", {1, 2}, 1}, {"pack", {0, 1}, 1}};
const std::vector<ConfigParam> kFragRingParams = {
    {"strips", {1, 2}, 1}, {"warps", {4, 8, 12}, 8}, {"stages", {1, 2}, 2}};
const std::vector<ConfigParam> kFragWideParams = {
    {"tiles", {1, 2}, 1}, {"strips", {1, 2}, 1}, {"warps", {4, 8, 12}, 8}, {"stages", {1, 2}, 2}};
const std::vector<ConfigParam> kFragDirectParams = {{"warps", {4, 6}, 4}};
const std::vector<ConfigParam> kFragTileParams = {
    {"cols", {32, 64, 128}, 64}, {"groups", {2, 4}, 2}, {"split", {1, 2, 4, 8}, 4}, {"cluster", {1, 2}, 1}};
// Depth: elements of k of a stage. Share: blocks that copy columns for each other.
const std::vector<ConfigParam> kMmsfGroupParams = {{"cols", {16, 32, 64}, 64},
                                                   {"groups", {1, 2}, 2},
                                                   {"depth", {128, 256}, 128},
                                                   {"split", {1, 2, 4, 8}, 4},
                                                   {"share", {1, 2}, 1}};
// 0: the library's own choice; else the number of a suggestion of cuBLASLt.
const std::vector<ConfigParam> kBlasParams = {{"algo", {0, 2, 4, 5, 7}, 0}};
// Fallbacks that need no spilling on any architecture.
std::vector<ConfigParam> tile_params(int tile_n) {
  return {{"tile_m", {32, 64, 128}, 64}, {"tile_n", {16, 32, 64, 128}, tile_n}, {"split", {1, 2, 4, 8}, 4}};
}

}  // namespace

std::span<const Family> mul_mat_families() {
  static const std::vector<Family> kFamilies = {
      {"frag_vector", kFragVectorParams, frag_vector_can_run},
      {"frag_ring", kFragRingParams, frag_ring_can_run},
      {"frag_wide", kFragWideParams, frag_wide_can_run},
      {"frag_direct", kFragDirectParams, frag_direct_can_run},
      {"frag_tile", kFragTileParams, frag_tile_can_run},
      {"mmvq", kMmvqParams, mmvq_can_run},
      {"mmvf", kMmvfParams, mmvf_can_run},
      {"mmsf", kMmsfParams, mmsf_can_run},
      {"mmsf_ring", kMmsfRingParams, mmsf_ring_can_run},
      {"mmsf_group", kMmsfGroupParams, mmsf_group_can_run},
      {"mmq", tile_params(64), mmq_can_run},
      {"mmf", tile_params(32), mmf_can_run},
      {"dequant_gemm", {}, dequant_gemm_can_run},
      {"blas", kBlasParams, blas_can_run},
      {"blas_batched", {}, blas_batched_can_run},
  };
  return kFamilies;
}

Problem mul_mat_problem(const Tensor& product) {
  const Tensor& w = *product.src[0];
  const Tensor& x = *product.src[1];
  const auto params = product.params.as<MulMatParams>();
  const int64_t batch = x.ne[2] * x.ne[3];
  const int64_t weight_batch = w.ne[2] * w.ne[3];
  return {"mul_mat",
          std::string(dtype_name(w.type)),
          {{"m", w.ne[1]},
           {"n", x.ne[1]},
           {"k", w.ne[0]},
           {"batch", batch},
           {"broadcast", weight_batch > 0 ? batch / weight_batch : 1},
           {"w_dense", is_contiguous(w) ? 1 : 0},
           {"x_dense", is_contiguous(x) ? 1 : 0},
           {"f32_precision", params.precision == Precision::kF32 ? 1 : 0},
           {"x_f16", x.type == DType::f16 ? 1 : 0},
           {"frag", frag_view(w) ? 1 : 0}}};
}

}  // namespace cudabk
