// Host side of the row kernels (kernels/common/rows.h): merging dimensions, alignment, how a grid covers the rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/rows_args.h"
#include "dispatch/problem.h"
#include "graph/tensor.h"
#include "ops/launch.h"

namespace cudabk {

inline constexpr int kRowThreads = 256;  // threads per block of the element-wise kernels
inline constexpr int kMaxOperands = 3;
inline constexpr int64_t kMaxGridX = 0x7fffffff;  // hardware: blocks along x

// One dimension of a computation: how far each operand moves per step, in elements. Unused operands keep 0.
struct LoopDim {
  int64_t extent = 1;
  std::array<int64_t, kMaxOperands> stride{};
  int64_t wrapped = 1;  // extent of the operand that repeats by modulo (binary ops: b); equal to extent elsewhere
};

// Strides and view offset are whole elements. False makes the element pointers of the kernels impossible.
bool has_element_strides(const Tensor& t);

// nb[i] in elements (blocks for block types).
int64_t element_stride(const Tensor& t, int dim);

// Drops dims of extent 1 (never dim 0) and joins neighbours that every operand walks as one. Order is kept.
std::vector<LoopDim> merge_dims(const std::vector<LoopDim>& dims);

// Whether `operand` can be read `vec` elements at a time: dim 0 dense (precondition), first element and every row start
// aligned. The memory of root tensors is at least 128-byte aligned.
bool is_vector_aligned(const std::vector<LoopDim>& dims, int operand, const Tensor& t, int vec);

// At most four dims. `stride` of operand i for dims 1..3.
RowStrides row_strides(const std::vector<LoopDim>& dims, int operand);

struct RowLaunch {
  RowGrid grid;
  Dim3 blocks;
  int packs = 1;  // per thread
};

// How kRowThreads-wide blocks cover `dims` (at most four) with packs of `vec` elements. Threads per row: the power of
// two that leaves the fewest threads idle. Packs: 4 where every resident thread of the device still gets work and
// `several_packs` are allowed, else 1. kUnsupported when the grid would be too large.
Result<RowLaunch> plan_rows(const std::vector<LoopDim>& dims, int vec, const DeviceInfo& device,
                            bool several_packs = true);

// Template arguments "Src, Dst" of the kernels that move elements of plain types: bits where the type stays.
std::string element_types(DType src, DType dst);

// ceil(count / per_block) blocks along x, or kUnsupported.
Result<Dim3> linear_grid(int64_t count, int64_t per_block);

// 4 where every resident thread of the device still gets work with four packs each, else 1.
int packs_per_thread(int64_t packs, const DeviceInfo& device);

}  // namespace cudabk
