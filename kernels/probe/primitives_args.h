// Arguments of the kernels that check the platform's primitives.
#pragma once

#include "platform/types.h"

namespace cudabk {

// One warp-wide product. The number in a form's name is m, n, k.
enum class MmaForm : int32_t { kF16x16x8x16, kBf16x16x8x16, kF16x16x8x8, kS8x16x8x32, kS8x16x8x16, kS8x8x8x16 };

constexpr int mma_rows(MmaForm f) { return f == MmaForm::kS8x8x8x16 ? 8 : 16; }
constexpr bool mma_is_integer(MmaForm f) {
  return f == MmaForm::kS8x16x8x32 || f == MmaForm::kS8x16x8x16 || f == MmaForm::kS8x8x8x16;
}
// Bytes of one row of A or one column of B.
constexpr int mma_k_bytes(MmaForm f) {
  return f == MmaForm::kF16x16x8x16 || f == MmaForm::kBf16x16x8x16 || f == MmaForm::kS8x16x8x32 ? 32 : 16;
}

struct ProbeMmaArgs {
  const uint8_t* a;  // [m][k]
  const uint8_t* b;  // [n][k]
  uint32_t* d;       // [m][n], f32 or s32: read, then written with the sum
};

struct ProbeMoveArgs {
  const uint8_t* from;
  uint8_t* to;
  int valid;  // threads that copy; the others leave zeros
};

constexpr int kProbeValueCount = 27;  // results per element of probe_values

struct ProbeValuesArgs {
  const float* x;     // [count]
  const float* y;     // [count]
  const uint32_t* u;  // [count]
  const uint32_t* v;  // [count]
  uint32_t* results;  // [kProbeValueCount][count]
  int count;
};

struct ProbeWarpArgs {
  const float* x;     // [threads]
  float* floats;      // [4][threads]: shuffle, xor, down, block sum through shared memory
  int32_t* integers;  // [6][threads]: lane, warp, any, all, grid_x, block_x
  float* float_sum;   // atomic
  int32_t* int_sum;
  uint32_t* uint_sum;
};

// Two kernels in a row; the second may start before the first has ended.
struct ProbeOverlapArgs {
  const float* from;
  float* to;
  int64_t* times_ns;  // [2]: start of the kernel, its end
  int64_t spin_ns;    // before it writes
};

}  // namespace cudabk
