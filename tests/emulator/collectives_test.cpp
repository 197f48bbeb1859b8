// Warp and block primitives of the emulated GPU against plain loops, in every thread order.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "emulator/launch.h"

namespace cudabk {
namespace {

constexpr uint32_t kSeed = 4711;

// Whole matrices: A [16][32], B [32][8] (k x column), as the element type's bits; C [16][8].
struct Matrices {
  uint16_t a16[16][32], b16[32][8];
  int8_t a8[16][32], b8[32][8];
  float c[16][8];
  int32_t c32[16][8];
};

uint32_t pair(uint16_t low, uint16_t high) { return low | uint32_t{high} << 16; }

uint32_t quad(const int8_t* p, int step) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= uint32_t{static_cast<uint8_t>(p[i * step])} << (8 * i);
  }
  return word;
}

struct MmaArgs {
  Matrices* m;
  int form;  // 0: f16 k16, 1: bf16 k16, 2: f16 k8, 3: s8 k32, 4: s8 k16, 5: s8 m8 k16
};

// Fragments by the table of the PTX manual: R0 (g; 2t), R1 (g + 8; 2t), R2 (g; 2t + 8), R3 (g + 8; 2t + 8), ...
void multiply_floats(const MmaArgs& args, int g, int t) {
  Matrices& m = *args.m;
  const auto a = [&](int row, int k) { return pair(m.a16[row][k], m.a16[row][k + 1]); };
  const auto b = [&](int k) { return pair(m.b16[k][g], m.b16[k + 1][g]); };
  float d[4] = {m.c[g][2 * t], m.c[g][2 * t + 1], m.c[g + 8][2 * t], m.c[g + 8][2 * t + 1]};
  if (args.form == 2) {
    const uint32_t fragment[2] = {a(g, 2 * t), a(g + 8, 2 * t)};
    mma_f16_1688(d, fragment, b(2 * t));
  } else {
    const uint32_t left[4] = {a(g, 2 * t), a(g + 8, 2 * t), a(g, 2 * t + 8), a(g + 8, 2 * t + 8)};
    const uint32_t right[2] = {b(2 * t), b(2 * t + 8)};
    args.form == 0 ? mma_f16_16816(d, left, right) : mma_bf16_16816(d, left, right);
  }
  for (int i = 0; i < 4; ++i) {
    m.c[g + 8 * (i / 2)][2 * t + i % 2] = d[i];
  }
}

void multiply_bytes(const MmaArgs& args, int g, int t) {
  Matrices& m = *args.m;
  const auto a = [&](int row, int k) { return quad(&m.a8[row][k], 1); };
  const auto b = [&](int k) { return quad(&m.b8[k][g], 8); };
  int32_t d[4] = {m.c32[g][2 * t], m.c32[g][2 * t + 1], m.c32[g + 8][2 * t], m.c32[g + 8][2 * t + 1]};
  if (args.form == 3) {
    const uint32_t left[4] = {a(g, 4 * t), a(g + 8, 4 * t), a(g, 4 * t + 16), a(g + 8, 4 * t + 16)};
    const uint32_t right[2] = {b(4 * t), b(4 * t + 16)};
    mma_s8_16832(d, left, right);
  } else if (args.form == 4) {
    const uint32_t left[2] = {a(g, 4 * t), a(g + 8, 4 * t)};
    mma_s8_16816(d, left, b(4 * t));
  } else {
    int32_t half[2] = {d[0], d[1]};
    mma_s8_8816(half, a(g, 4 * t), b(4 * t));
    d[0] = half[0];
    d[1] = half[1];
  }
  for (int i = 0; i < 4; ++i) {
    m.c32[g + 8 * (i / 2)][2 * t + i % 2] = d[i];
  }
}

void mma_kernel(MmaArgs args) {
  const int g = lane() / 4, t = lane() % 4;
  args.form < 3 ? multiply_floats(args, g, t) : multiply_bytes(args, g, t);
}

Matrices random_matrices(bool bf) {
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int> small(-16, 16), byte(-128, 127);
  Matrices m;
  const auto half = [&] {  // sixteenths: every product and sum below is exact in float
    const float x = static_cast<float>(small(random)) / 16;
    return bf ? to_bf16(x).bits : to_f16(x).bits;
  };
  for (int k = 0; k < 32; ++k) {
    for (int i = 0; i < 16; ++i) {
      m.a16[i][k] = half();
      m.a8[i][k] = static_cast<int8_t>(byte(random));
    }
    for (int j = 0; j < 8; ++j) {
      m.b16[k][j] = half();
      m.b8[k][j] = static_cast<int8_t>(byte(random));
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      m.c[i][j] = static_cast<float>(small(random));
      m.c32[i][j] = small(random);
    }
  }
  return m;
}

class Mma : public ::testing::TestWithParam<int> {};

TEST_P(Mma, MatchesAPlainLoop) {
  SCOPED_TRACE(kSeed);
  const int form = GetParam();
  const int depth = form == 2 ? 8 : form == 3 ? 32 : 16, rows = form == 5 ? 8 : 16;
  for (const Shape& shape : all_orders({})) {
    const Matrices before = random_matrices(form == 1);
    Matrices after = before;
    ASSERT_EQ(launch(mma_kernel, MmaArgs{&after, form}, shape), "");
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        float sum = before.c[i][j];
        int32_t sum32 = before.c32[i][j];
        for (int k = 0; k < depth && i < rows; ++k) {
          const uint16_t a = before.a16[i][k], b = before.b16[k][j];
          sum += form == 1 ? to_float(bf16{a}) * to_float(bf16{b}) : to_float(f16{a}) * to_float(f16{b});
          sum32 += before.a8[i][k] * before.b8[k][j];
        }
        if (form < 3) {
          ASSERT_EQ(after.c[i][j], sum) << i << ", " << j;
        } else {
          ASSERT_EQ(after.c32[i][j], sum32) << i << ", " << j;
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Forms, Mma, ::testing::Range(0, 6));

struct LdmatrixArgs {
  uint32_t (*out)[12];  // per lane: x4, x2, x1, then the same transposed: 4 + 2 + 1 (+ 1 unused)
  bool transposed;
};

// Four 8 x 8 matrices of b16 with the element's number as its value, matrix i at rows 8i ... 8i + 7.
void ldmatrix_kernel(LdmatrixArgs a) {
  auto* shared = shared_memory<uint16_t>();
  for (int i = thread_x(); i < 4 * 64; i += 32) {
    shared[i] = static_cast<uint16_t>(i);
  }
  warp_sync();
  const void* row = shared + lane() * 8;
  uint32_t x4[4], x2[2], x1;
  if (a.transposed) {
    ldmatrix_x4_trans(x4, row);
    ldmatrix_x2_trans(x2, row);
    ldmatrix_x1_trans(x1, row);
  } else {
    ldmatrix_x4(x4, row);
    ldmatrix_x2(x2, row);
    ldmatrix_x1(x1, row);
  }
  uint32_t* out = a.out[lane()];
  std::memcpy(out, x4, sizeof(x4));
  std::memcpy(out + 4, x2, sizeof(x2));
  out[6] = x1;
}

TEST(Ldmatrix, RowsAndColumns) {
  for (const bool transposed : {false, true}) {
    for (const Shape& shape : all_orders({.shared_bytes = 512})) {
      uint32_t out[32][12] = {};
      ASSERT_EQ(launch(ldmatrix_kernel, LdmatrixArgs{out, transposed}, shape), "");
      for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4; ++i) {
          const auto element = [&](int e) {
            const int fast = 2 * (l % 4) + e, slow = l / 4;
            return static_cast<uint16_t>(i * 64 + (transposed ? fast * 8 + slow : slow * 8 + fast));
          };
          const uint32_t expected = pair(element(0), element(1));
          ASSERT_EQ(out[l][i], expected);
          ASSERT_TRUE(i >= 2 || out[l][4 + i] == expected);
          ASSERT_TRUE(i >= 1 || out[l][6] == expected);
        }
      }
    }
  }
}

struct ShuffleArgs {
  float* results;  // [threads][4]
  int* votes;      // [threads][3]
};

void shuffle_kernel(ShuffleArgs a) {
  const auto mine = static_cast<float>(thread_x());
  float* result = a.results + 4 * thread_x();
  result[0] = shuffle(mine, (lane() + 5) % 32);
  result[1] = shuffle_xor(mine, 9);
  result[2] = shuffle_down(mine, 3);
  result[3] = static_cast<float>(shuffle_xor(thread_x(), 1) + static_cast<int>(shuffle(7u, 0)));
  int* votes = a.votes + 3 * thread_x();
  votes[0] = warp_any(lane() == 17);
  votes[1] = warp_all(lane() != 17);
  votes[2] = warp_all(true) && !warp_any(false);
}

TEST(Shuffle, EveryKindInEveryOrder) {
  constexpr int kThreads = 96;
  for (const Shape& shape : all_orders({.threads = kThreads})) {
    float results[kThreads][4] = {};
    int votes[kThreads][3] = {};
    ASSERT_EQ(launch(shuffle_kernel, ShuffleArgs{results[0], votes[0]}, shape), "");
    for (int x = 0; x < kThreads; ++x) {
      const int base = x / 32 * 32, l = x % 32;
      ASSERT_EQ(results[x][0], base + (l + 5) % 32);
      ASSERT_EQ(results[x][1], base + (l ^ 9));
      ASSERT_EQ(results[x][2], base + (l + 3 < 32 ? l + 3 : l));
      ASSERT_EQ(results[x][3], (x ^ 1) + 7);
      ASSERT_TRUE(votes[x][0] == 1 && votes[x][1] == 0 && votes[x][2] == 1);
    }
  }
}

struct CountArgs {
  int rounds;
  float* sums;      // [blocks]
  uint32_t* total;  // over all blocks
};

// A tree sum in shared memory, several times over, with two barriers per level.
void tree_kernel(CountArgs a) {
  auto* shared = shared_memory<float>();
  float sum = 0;
  for (int round = 0; round < a.rounds; ++round) {
    shared[thread_x()] = static_cast<float>(thread_x() + round);
    block_sync();
    for (int half = 128; half > 0; half /= 2) {
      if (thread_x() < half) {
        shared[thread_x()] += shared[thread_x() + half];
      }
      block_sync();
    }
    sum += shared[0];
    block_sync();
  }
  if (thread_x() == 0) {
    a.sums[block_x()] = sum;
  }
  atomic_add(a.total, 1u);
}

TEST(Barrier, TreeSumInManyBlocks) {
  constexpr uint32_t kBlocks = 37;
  for (const Shape& shape : all_orders({.threads = 256, .shared_bytes = 1024, .blocks = kBlocks})) {
    float sums[kBlocks] = {};
    uint32_t total = 0;
    ASSERT_EQ(launch(tree_kernel, CountArgs{3, sums, &total}, shape), "");
    EXPECT_EQ(total, 256 * kBlocks);
    for (const float sum : sums) {
      ASSERT_EQ(sum, 3 * 255 * 128 + 256 * (0 + 1 + 2));
    }
  }
}

struct AtomicArgs {
  float* sum;
};
void atomic_kernel(AtomicArgs a) { atomic_add(a.sum, 1.0f); }

TEST(Atomics, AddAcrossBlocks) {
  float sum = 0;
  ASSERT_EQ(launch(atomic_kernel, AtomicArgs{&sum}, {.threads = 1024, .blocks = 200}), "");
  EXPECT_EQ(sum, 1024.0f * 200);
}

struct SharedArgs {
  int* bad;
  int count;
};
void poison_kernel(SharedArgs a) {
  const auto* shared = shared_memory<float>();
  if (reinterpret_cast<uintptr_t>(shared) % 128 != 0) {
    atomic_add(a.bad, 1);
  }
  for (int i = thread_x(); i < a.count; i += 64) {
    if (shared[i] == shared[i]) {
      atomic_add(a.bad, 1);
    }
  }
  block_sync();
  for (int i = thread_x(); i < a.count; i += 64) {
    shared_memory<float>()[i] = 0;  // must not be seen by the next block
  }
}

TEST(SharedMemory, StartsAsNanInEveryBlock) {
  int bad = 0;
  ASSERT_EQ(launch(poison_kernel, SharedArgs{&bad, 250}, {.threads = 64, .shared_bytes = 1000, .blocks = 50}), "");
  EXPECT_EQ(bad, 0);
}

struct CopyArgs {
  const uint32_t* from;  // [4][4]
  uint32_t* seen;        // [8]
};

// Three groups of one 16-byte copy each; what shared memory holds is recorded after every step.
void copy_kernel(CopyArgs a) {
  auto* shared = shared_memory<uint32_t>();
  for (int group = 0; group < 3; ++group) {
    async_copy_16(shared + 4 * group, a.from + 4 * group);
    async_commit();
  }
  a.seen[0] = shared[0];  // nothing was waited for
  async_wait<2>();
  a.seen[1] = shared[0];
  a.seen[2] = shared[4];
  async_wait<0>();
  a.seen[3] = shared[4];
  a.seen[4] = shared[11];
  async_copy_16(shared + 12, a.from + 12, false);
  async_wait<0>();  // not committed
  a.seen[5] = shared[12];
  async_commit();
  async_wait<0>();
  a.seen[6] = shared[12];
  async_copy_4(shared, a.from + 5);
  async_copy_8(shared + 2, a.from + 6);
  async_commit();
  async_wait<0>();
  a.seen[7] = shared[0] + shared[3];
}

TEST(AsyncCopy, HappensAtTheWait) {
  alignas(16) uint32_t from[16];
  for (uint32_t i = 0; i < 16; ++i) {
    from[i] = 100 + i;
  }
  uint32_t seen[8] = {};
  ASSERT_EQ(launch(copy_kernel, CopyArgs{from, seen}, {.threads = 1, .shared_bytes = 64}), "");
  constexpr uint32_t kPoison = 0xffffffff;
  const uint32_t expected[8] = {kPoison, 100, kPoison, 104, 111, kPoison, 0, 105 + 107};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(seen[i], expected[i]) << i;
  }
}

struct IndexArgs {
  uint32_t* seen;  // [grid z][grid y][grid x][threads]
};
void index_kernel(IndexArgs a) {
  const int block = (block_z() * grid_y() + block_y()) * grid_x() + block_x();
  atomic_add(&a.seen[block * 40 + thread_x()], static_cast<uint32_t>(1 + warp() * 100 + lane()));
}

TEST(Indices, EveryThreadOfEveryBlockRunsOnce) {
  for (const host::Order order : {host::Order::kAscending, host::Order::kDescending, host::Order::kShuffled}) {
    std::vector<uint32_t> seen(3 * 4 * 5 * 40);
    host::HostLaunch call;
    call.grid[0] = 5;
    call.grid[1] = 4;
    call.grid[2] = 3;
    call.threads = 40;
    call.order = order;
    call.seed = 99;
    ASSERT_FALSE(host::run_kernel(index_kernel, IndexArgs{seen.data()}, call).has_value());
    for (size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i], 1 + i % 40 / 32 * 100 + i % 40 % 32);
    }
  }
}

}  // namespace
}  // namespace cudabk
