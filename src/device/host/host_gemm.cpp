#include "device/host/host_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "platform/host_launch.h"
#include "platform/host_numbers.h"

namespace cudabk {

namespace {

// Both operands are contiguous along k. A panel of kColumns columns of B and kRows of A is converted to f32 once and
// used for the whole block of C; kLanes partial sums per element let the compiler use vector registers.
constexpr int64_t kRows = 64, kColumns = 64, kDepth = 512;
constexpr int kLanes = 8;

int64_t element_bytes(DType type) { return block_bytes(type); }

void load_panel(DType type, const std::byte* from, int64_t ld, int64_t vectors, int64_t depth, float* to) {
  for (int64_t v = 0; v < vectors; ++v) {
    const std::byte* source = from + v * ld * element_bytes(type);
    float* target = to + v * kDepth;
    if (type == DType::f32) {
      std::memcpy(target, source, depth * sizeof(float));
    } else {
      for (int64_t i = 0; i < depth; ++i) {
        uint16_t bits;
        std::memcpy(&bits, source + 2 * i, sizeof(bits));
        target[i] = type == DType::f16 ? to_float(f16{bits}) : to_float(bf16{bits});
      }
    }
    std::fill(target + depth, target + (depth + kLanes - 1) / kLanes * kLanes, 0.0f);
  }
}

// sums[r][c] += dot products of two rows of A with two columns of B.
void add_products(const float* a, const float* b, int64_t depth, std::array<std::array<float, 2>, 2>& sums) {
  float s00[kLanes] = {}, s01[kLanes] = {}, s10[kLanes] = {}, s11[kLanes] = {};
  const float *a1 = a + kDepth, *b1 = b + kDepth;
  for (int64_t i = 0; i < depth; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      s00[l] += a[i + l] * b[i + l];
      s01[l] += a[i + l] * b1[i + l];
      s10[l] += a1[i + l] * b[i + l];
      s11[l] += a1[i + l] * b1[i + l];
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    sums[0][0] += s00[l];
    sums[0][1] += s01[l];
    sums[1][0] += s10[l];
    sums[1][1] += s11[l];
  }
}

void store(DType type, std::byte* to, float value) {
  if (type == DType::f32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const uint16_t bits = type == DType::f16 ? to_f16(value).bits : to_bf16(value).bits;
  std::memcpy(to, &bits, sizeof(bits));
}

struct Operands {
  const std::byte* a;
  const std::byte* b;
  std::byte* c;
};

Operands operands(const GemmCall& call, int64_t entry) {
  if (call.pointer_arrays) {
    const auto at = [&](DevicePtr array) {
      DevicePtr pointer;
      std::memcpy(&pointer, array + entry * static_cast<int64_t>(sizeof(pointer)), sizeof(pointer));
      return pointer;
    };
    return {at(call.a), at(call.b), at(call.c)};
  }
  return {call.a + entry * call.stride_a * element_bytes(call.type_ab),
          call.b + entry * call.stride_b * element_bytes(call.type_ab),
          call.c + entry * call.stride_c * element_bytes(call.type_c)};
}

struct Panels {
  std::vector<float> a = std::vector<float>(kRows * kDepth);
  std::vector<float> b = std::vector<float>(kColumns * kDepth);
  std::vector<float> c = std::vector<float>(kRows * kColumns);
};

// One block of C of one batch entry, from row i0 and column j0.
void run_block(const GemmCall& call, const Operands& op, int64_t i0, int64_t j0, Panels& panels) {
  const int64_t rows = std::min(kRows, call.m - i0), columns = std::min(kColumns, call.n - j0);
  const int64_t bytes = element_bytes(call.type_ab);
  std::fill(panels.c.begin(), panels.c.end(), 0.0f);
  for (int64_t k0 = 0; k0 < call.k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, call.k - k0);
    load_panel(call.type_ab, op.a + (i0 * call.lda + k0) * bytes, call.lda, rows, depth, panels.a.data());
    load_panel(call.type_ab, op.b + (j0 * call.ldb + k0) * bytes, call.ldb, columns, depth, panels.b.data());
    for (int64_t j = 0; j < columns; j += 2) {
      for (int64_t i = 0; i < rows; i += 2) {  // beyond the edge: stale panel rows, whose sums are not stored
        std::array<std::array<float, 2>, 2> sums{};
        add_products(&panels.a[i * kDepth], &panels.b[j * kDepth], depth, sums);
        for (int r = 0; r < 2; ++r) {
          for (int c = 0; c < 2; ++c) {
            panels.c[(j + c) * kRows + i + r] += sums[r][c];
          }
        }
      }
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      std::byte* to = op.c + ((j0 + j) * call.ldc + i0 + i) * element_bytes(call.type_c);
      store(call.type_c, to, panels.c[j * kRows + i]);
    }
  }
}

Status check(const GemmCall& call) {
  const bool types = is_float(call.type_ab) && (call.type_c == DType::f32 || call.type_c == call.type_ab);
  if (!types) {
    return invalid(fmt::format("gemm: operands {} with result {} are not offered", dtype_traits(call.type_ab).name,
                               dtype_traits(call.type_c).name));
  }
  if (call.m < 0 || call.n < 0 || call.k < 0 || call.batch < 0 || call.lda < call.k || call.ldb < call.k ||
      call.ldc < call.m) {
    return invalid(fmt::format("gemm: m={} n={} k={} batch={} with lda={} ldb={} ldc={}", call.m, call.n, call.k,
                               call.batch, call.lda, call.ldb, call.ldc));
  }
  return success();
}

}  // namespace

Status run_host_gemm(const GemmCall& call, const std::atomic<bool>* interrupted) {
  CUDABK_TRY(check(call));
  const int64_t row_blocks = (call.m + kRows - 1) / kRows, column_blocks = (call.n + kColumns - 1) / kColumns;
  const int64_t blocks = row_blocks * column_blocks * call.batch;
  if (blocks == 0) {
    return success();
  }
  std::atomic<int64_t> next = 0;
  const auto stopped = [&] { return interrupted != nullptr && interrupted->load(std::memory_order_relaxed); };
  host::run_on_cores(static_cast<uint64_t>(blocks), [&] {
    Panels panels;
    for (int64_t block = next++; block < blocks && !stopped(); block = next++) {
      const int64_t entry = block / (row_blocks * column_blocks);
      const int64_t i = block % row_blocks, j = block / row_blocks % column_blocks;
      run_block(call, operands(call, entry), i * kRows, j * kColumns, panels);
    }
  });
  return stopped() ? Status(Error{ErrorKind::kInterrupted, "interrupted in a matrix product"}) : success();
}

}  // namespace cudabk
