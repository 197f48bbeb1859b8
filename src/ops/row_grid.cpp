#include "ops/row_grid.h"

#include <string_view>

#include <fmt/format.h>

namespace cudabk {
namespace {

constexpr int64_t kResidentThreads = 2048;  // hardware: per SM
constexpr int kWarp = 32;                   // hardware
constexpr int kRowThreadsLog2 = 8;
static_assert(1 << kRowThreadsLog2 == kRowThreads);

int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }

std::string_view element_type(DType type, bool bits) {
  switch (type) {
    case DType::f16:
      return bits ? "uint16_t" : "f16";
    case DType::bf16:
      return bits ? "uint16_t" : "bf16";
    case DType::i32:
      return bits ? "uint32_t" : "int32_t";
    default:
      return bits ? "uint32_t" : "float";
  }
}

bool can_join(const LoopDim& inner, const LoopDim& outer) {
  for (int i = 0; i < kMaxOperands; ++i) {
    const bool wraps = i == 1 && inner.wrapped == 1 && outer.wrapped == 1;  // one value for both dims
    if (!wraps && outer.stride[i] != inner.stride[i] * inner.extent) {
      return false;
    }
  }
  return (inner.wrapped == inner.extent && outer.wrapped == outer.extent) || (inner.wrapped == 1 && outer.wrapped == 1);
}

}  // namespace

bool has_element_strides(const Tensor& t) {
  const int64_t size = block_bytes(t.type);
  for (int i = 0; i < 4; ++i) {
    if (t.ne[i] > 1 && t.nb[i] % size != 0) {
      return false;
    }
  }
  return t.view_offset % size == 0;
}

int64_t element_stride(const Tensor& t, int dim) { return t.nb[dim] / block_bytes(t.type); }

std::vector<LoopDim> merge_dims(const std::vector<LoopDim>& dims) {
  std::vector<LoopDim> merged;
  for (const LoopDim& dim : dims) {
    if (!merged.empty() && dim.extent == 1) {
      continue;
    }
    if (!merged.empty() && can_join(merged.back(), dim)) {
      merged.back().extent *= dim.extent;
      merged.back().wrapped *= dim.wrapped;
      continue;
    }
    merged.push_back(dim);
  }
  return merged;
}

bool is_vector_aligned(const std::vector<LoopDim>& dims, int operand, const Tensor& t, int vec) {
  if (t.view_offset % (vec * block_bytes(t.type)) != 0) {
    return false;
  }
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i].stride[operand] % vec != 0) {
      return false;
    }
  }
  return true;
}

RowStrides row_strides(const std::vector<LoopDim>& dims, int operand) {
  const auto stride = [&](size_t i) { return i < dims.size() ? dims[i].stride[operand] : 0; };
  return {stride(1), stride(2), stride(3)};
}

int packs_per_thread(int64_t packs, const DeviceInfo& device) {
  return packs >= 4 * kResidentThreads * device.sm_count ? 4 : 1;
}

Result<Dim3> linear_grid(int64_t count, int64_t per_block) {
  const int64_t blocks = ceil_div(count, per_block);
  if (blocks > kMaxGridX) {
    return unsupported(fmt::format("{} blocks are more than a grid can have ({})", blocks, kMaxGridX));
  }
  return Dim3{static_cast<uint32_t>(blocks), 1, 1};
}

std::string element_types(DType src, DType dst) {
  return fmt::format("{}, {}", element_type(src, src == dst), element_type(dst, src == dst));
}

Result<RowLaunch> plan_rows(const std::vector<LoopDim>& dims, int vec, const DeviceInfo& device, bool several_packs) {
  const auto extent = [&](size_t i) { return i < dims.size() ? dims[i].extent : 1; };
  RowLaunch launch;
  RowGrid& grid = launch.grid;
  grid.cols = extent(0);
  grid.ne1 = extent(1);
  grid.ne2 = extent(2);
  grid.rows = extent(1) * extent(2) * extent(3);
  // Short rows fit a few threads; several packs each would only spread their accesses.
  const bool long_rows = grid.cols >= int64_t{4} * kWarp * vec;
  launch.packs = several_packs && long_rows ? packs_per_thread(ceil_div(grid.cols, vec) * grid.rows, device) : 1;

  int64_t least = INT64_MAX;
  for (int log2 = kRowThreadsLog2; log2 >= 0; --log2) {
    const int64_t step = (int64_t{vec} * launch.packs) << log2;
    if ((1 << log2) < kWarp && step < grid.cols) {
      break;  // less than a warp along a row only where it covers the row
    }
    const int64_t slots = ceil_div(grid.cols, step) << log2;
    if (slots < least) {
      least = slots;
      grid.col_threads_log2 = log2;
      grid.blocks_per_row = ceil_div(grid.cols, step);
    }
  }
  const int64_t row_groups = ceil_div(grid.rows, kRowThreads >> grid.col_threads_log2);
  CUDABK_ASSIGN(launch.blocks, linear_grid(row_groups * grid.blocks_per_row, 1));
  return launch;
}

}  // namespace cudabk
