// What the last lane to arrive does for its warp. Fragment maps: lane = 4 * g + t.
#include "platform/host_collectives.h"

#include <bit>
#include <cstring>

#include "platform/host_memory.h"
#include "platform/host_numbers.h"
#include "platform/host_runner.h"
#include "platform/host_state.h"

namespace cudabk::host {

namespace {

constexpr int kColumns = 8;  // of every product

// C[i][j] = sum over k of A[i][k] * B[k][j], for one instruction.
template <class T, int M, int K>
struct Product {
  T a[M][K];
  T b[K][kColumns];
  T c[M][kColumns];

  void multiply() {
    for (int i = 0; i < M; ++i) {
      T row[kColumns] = {};
      for (int k = 0; k < K; ++k) {
        for (int j = 0; j < kColumns; ++j) {
          row[j] += a[i][k] * b[k][j];
        }
      }
      std::memcpy(c[i], row, sizeof(row));
    }
  }
};

int byte_at(uint32_t word, int i) { return static_cast<int8_t>(word >> (8 * i)); }

// K is 8 or 16. A register 2h + r holds row g + 8r at k = 2t, 2t + 1 (+ 8h); B register h the same k of column g.
template <class Half, int K>
void multiply_halves(Exchange& x) {
  constexpr int kHalves = K / 8, kWords = 8;  // of Exchange::in
  float low[kLanes][kWords], high[kLanes][kWords];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kWords; ++i) {  // words that hold no operand are converted and not used
      const uint32_t word = x.in[lane][i];
      low[lane][i] = to_float(Half{static_cast<uint16_t>(word)});
      high[lane][i] = to_float(Half{static_cast<uint16_t>(word >> 16)});
    }
  }
  Product<float, 16, K> p;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int h = 0; h < kHalves; ++h) {
      const int k = 8 * h + 2 * t, a = 2 * h, b = 2 * kHalves + h;
      p.a[g][k] = low[lane][a];
      p.a[g][k + 1] = high[lane][a];
      p.a[g + 8][k] = low[lane][a + 1];
      p.a[g + 8][k + 1] = high[lane][a + 1];
      p.b[k][g] = low[lane][b];
      p.b[k + 1][g] = high[lane][b];
    }
  }
  p.multiply();
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      x.out[lane][i] = std::bit_cast<uint32_t>(p.c[g + 8 * (i / 2)][2 * t + i % 2]);
    }
  }
}

// K is 16 or 32, M 8 or 16. A register: row g (+ 8) at k = 4t ... 4t + 3 (+ 16); B register: the same k of column g.
template <int M, int K>
void multiply_bytes(Exchange& x) {
  Product<int32_t, M, K> p;
  constexpr int kHalves = K / 16, kRows = M / 8;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const uint32_t* a = x.in[lane];
    const uint32_t* b = a + kRows * kHalves;
    for (int h = 0; h < kHalves; ++h) {
      for (int e = 0; e < 4; ++e) {
        const int k = 16 * h + 4 * t + e;
        for (int r = 0; r < kRows; ++r) {
          p.a[g + 8 * r][k] = byte_at(a[kRows * h + r], e);
        }
        p.b[k][g] = byte_at(b[h], e);
      }
    }
  }
  p.multiply();
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 2 * kRows; ++i) {
      x.out[lane][i] = static_cast<uint32_t>(p.c[g + 8 * (i / 2)][2 * t + i % 2]);
    }
  }
}

// Lane 8i + r gives the address of row r (16 bytes) of matrix i. Lane (g, t) gets columns 2t, 2t + 1 of row g; when
// transposed, rows 2t, 2t + 1 of column g.
void load_matrices(Exchange& x, int count, bool transposed) {
  for (int i = 0; i < count; ++i) {
    uint16_t matrix[8][8];
    for (int r = 0; r < 8; ++r) {
      uintptr_t address = 0;
      std::memcpy(&address, x.in[8 * i + r], sizeof(address));
      const auto* row = reinterpret_cast<const void*>(address);
      check_aligned<16>(row, "misaligned row of ldmatrix");
      std::memcpy(matrix[r], row, sizeof(matrix[r]));
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      const uint32_t low = transposed ? matrix[2 * t][g] : matrix[g][2 * t];
      const uint32_t high = transposed ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
      x.out[lane][i] = low | high << 16;
    }
  }
}

bool vote_result(const Warp& warp, const Exchange& x, bool all) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool exists = (warp.lanes >> lane & 1) != 0;
    if (exists && (x.word[lane] != 0) != all) {
      return !all;
    }
  }
  return all;
}

void require_full_warp(const Warp& warp) {
  if (warp.lanes != ~0u) {
    fail("a tensor-core instruction in a warp of fewer than 32 threads");
  }
}

}  // namespace

const char* collective_name(Collective kind) {
  switch (kind) {
    case Collective::kNone:
      return "nothing";
    case Collective::kBlockSync:
      return "block_sync";
    case Collective::kWarpSync:
      return "warp_sync";
    case Collective::kShuffle:
      return "shuffle";
    case Collective::kShuffleXor:
      return "shuffle_xor";
    case Collective::kShuffleDown:
      return "shuffle_down";
    case Collective::kWarpAny:
      return "warp_any";
    case Collective::kWarpAll:
      return "warp_all";
    case Collective::kMmaF16K16:
      return "mma_f16_16816";
    case Collective::kMmaBf16K16:
      return "mma_bf16_16816";
    case Collective::kMmaF16K8:
      return "mma_f16_1688";
    case Collective::kMmaS8K32:
      return "mma_s8_16832";
    case Collective::kMmaS8K16:
      return "mma_s8_16816";
    case Collective::kMmaS8M8K16:
      return "mma_s8_8816";
    case Collective::kLdmatrix1:
      return "ldmatrix_x1";
    case Collective::kLdmatrix2:
      return "ldmatrix_x2";
    case Collective::kLdmatrix4:
      return "ldmatrix_x4";
    case Collective::kLdmatrix1Trans:
      return "ldmatrix_x1_trans";
    case Collective::kLdmatrix2Trans:
      return "ldmatrix_x2_trans";
    case Collective::kLdmatrix4Trans:
      return "ldmatrix_x4_trans";
    case Collective::kWgmma:
      return "a warp-group product";
    case Collective::kBarrierWait:
      return "barrier_wait";
  }
  return "an unknown collective";
}

// Carries out the collective at which all lanes of `warp` have arrived, on the fiber of the last one.
void complete_collective(Warp& warp) {
  Exchange& x = warp.exchange[warp.phase];
  if (warp.kind >= Collective::kMmaF16K16) {
    require_full_warp(warp);
  }
  switch (warp.kind) {
    case Collective::kNone:
    case Collective::kBlockSync:
    case Collective::kWarpSync:
    case Collective::kShuffle:
    case Collective::kShuffleXor:
    case Collective::kShuffleDown:
    case Collective::kWgmma:
    case Collective::kBarrierWait:
      break;  // lanes read what the others posted
    case Collective::kWarpAny:
      x.out[0][0] = vote_result(warp, x, false);
      break;
    case Collective::kWarpAll:
      x.out[0][0] = vote_result(warp, x, true);
      break;
    case Collective::kMmaF16K16:
      multiply_halves<f16, 16>(x);
      break;
    case Collective::kMmaBf16K16:
      multiply_halves<bf16, 16>(x);
      break;
    case Collective::kMmaF16K8:
      multiply_halves<f16, 8>(x);
      break;
    case Collective::kMmaS8K32:
      multiply_bytes<16, 32>(x);
      break;
    case Collective::kMmaS8K16:
      multiply_bytes<16, 16>(x);
      break;
    case Collective::kMmaS8M8K16:
      multiply_bytes<8, 16>(x);
      break;
    case Collective::kLdmatrix1:
      load_matrices(x, 1, false);
      break;
    case Collective::kLdmatrix2:
      load_matrices(x, 2, false);
      break;
    case Collective::kLdmatrix4:
      load_matrices(x, 4, false);
      break;
    case Collective::kLdmatrix1Trans:
      load_matrices(x, 1, true);
      break;
    case Collective::kLdmatrix2Trans:
      load_matrices(x, 2, true);
      break;
    case Collective::kLdmatrix4Trans:
      load_matrices(x, 4, true);
      break;
  }
}

void arrive_warp(Collective kind) {
  Thread& thread = *current;
  thread.block->runner->arrive_warp(thread, kind);
}

void arrive_block() {
  Thread& thread = *current;
  thread.block->runner->arrive_block(thread);
}

void fail(const char* what) { current->block->runner->fail(what); }

void enqueue_copy(const AsyncCopy& copy) {
  const Block& block = *current->block;
  const auto* to = static_cast<const std::byte*>(copy.to);
  if (to < block.shared || to + copy.bytes > block.shared + block.shared_bytes) {
    fail("the destination of an async copy is outside shared memory");
  }
  current->copies.push_back(copy);
}

void commit_copies() { current->committed_ends.push_back(current->copies.size()); }

void complete_copies(size_t in_flight) {
  Thread& thread = *current;
  const size_t groups = thread.committed_ends.size();
  if (groups <= in_flight) {
    return;
  }
  const size_t finished = groups - in_flight;
  const size_t end = thread.committed_ends[finished - 1];
  for (size_t i = 0; i < end; ++i) {
    const AsyncCopy& copy = thread.copies[i];
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, copy.bytes);
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + static_cast<std::ptrdiff_t>(end));
  thread.committed_ends.erase(thread.committed_ends.begin(),
                              thread.committed_ends.begin() + static_cast<std::ptrdiff_t>(finished));
  for (size_t& remaining : thread.committed_ends) {
    remaining -= end;
  }
}

}  // namespace cudabk::host
