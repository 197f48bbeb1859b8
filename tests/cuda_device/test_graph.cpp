// CUDA graphs: building, replay, patching, rebuilding, programmatic edges.
#include <gtest/gtest.h>

#include <set>

#include "cuda_device/gpu.h"
#include "probe/args.h"
#include "probe/primitives_args.h"

namespace cudabk {
namespace {

class Graphs : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    scale_ = load("probe/probe.h", "probe<32>", sizeof(ProbeArgs));
    ASSERT_NE(scale_, nullptr);
  }

  KernelLaunch scale(const float* x, float* y, int count, float factor, bool programmatic = false) {
    KernelLaunch launch = make_launch(scale_, ProbeArgs{x, y, count, factor}, static_cast<uint32_t>(count + 31) / 32,
                                      32, 32 * sizeof(float));
    launch.programmatic = programmatic;
    return launch;
  }

  std::unique_ptr<ExecGraph> build(const std::vector<Work>& works) {
    auto graph = device->build_graph(works);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return graph.ok() ? std::move(graph).value() : nullptr;
  }

  void replay(ExecGraph& graph) {
    const Status ran = stream->run(graph);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    const Status finished = stream->synchronize();
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }

  const Kernel* scale_ = nullptr;
};

// C [m, n] = A^T B of ones is k everywhere.
GemmCall gemm_of(const Memory& a, const Memory& b, const Memory& c, int64_t m, int64_t n, int64_t k) {
  GemmCall call;
  call.m = m, call.n = n, call.k = k;
  call.lda = k, call.ldb = k, call.ldc = m;
  call.a = a.ptr(), call.b = b.ptr(), call.c = c.ptr();
  return call;
}

TEST_F(Graphs, WorksRunInOrderAtEveryReplay) {
  const Memory x = to_device(std::vector<float>(64, 1.0f));
  const auto graph = build({scale(as<float>(x), as<float>(x), 64, 2.0f), scale(as<float>(x), as<float>(x), 64, 3.0f)});
  ASSERT_NE(graph, nullptr);
  for (int i = 0; i < 3; ++i) {
    replay(*graph);
  }
  EXPECT_EQ(to_host<float>(x), std::vector<float>(64, 216.0f));
}

TEST_F(Graphs, AnEmptyGraphIsLegal) {
  const auto graph = build({});
  ASSERT_NE(graph, nullptr);
  replay(*graph);
  EXPECT_TRUE(graph->native_nodes(0).empty());
}

TEST_F(Graphs, KernelsFillsAndProductsWithPatches) {
  if (const Status available = device->gemm_available(); !available.ok()) {
    GTEST_SKIP() << available.error().message;
  }
  const int64_t m = 32, n = 16, k = 64;
  const Memory ones = to_device(std::vector<float>(m * k, 1.0f)), twos = to_device(std::vector<float>(m * k, 2.0f));
  const Memory c = to_device(std::vector<float>(m * n)), d = to_device(std::vector<float>(m * n, 7.0f));
  const int count = static_cast<int>(m * n);
  const auto graph = build({FillCall{d.ptr(), 0, d.bytes()}, gemm_of(ones, ones, c, m, n, k),
                            scale(as<float>(c), as<float>(d), count, 0.5f)});
  ASSERT_NE(graph, nullptr);
  replay(*graph);
  EXPECT_EQ(to_host<float>(c), std::vector<float>(count, 64.0f));
  EXPECT_EQ(to_host<float>(d), std::vector<float>(count, 32.0f));

  // Other arguments, other matrices, a shorter fill and kernel.
  ASSERT_TRUE(graph->update(2, scale(as<float>(c), as<float>(d), count / 2, 0.25f)).ok());
  Status patched = graph->update(1, gemm_of(twos, ones, c, m, n, k));
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  patched = graph->update(0, FillCall{d.ptr(), 0xff, d.bytes() / 2});
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  replay(*graph);
  EXPECT_EQ(to_host<float>(c), std::vector<float>(count, 128.0f));
  std::vector<float> expected(count, 32.0f);  // the second half as the first replay left it
  std::fill_n(expected.begin(), count / 2, 32.0f);
  EXPECT_EQ(to_host<float>(d), expected);

  // Another shape: perhaps another kernel, or several. At worst the graph is rebuilt, once.
  const int64_t long_k = 4096;
  const Memory a_long = to_device(std::vector<float>(m * long_k, 1.0f));
  patched = graph->update(1, gemm_of(a_long, a_long, c, m, n, long_k));
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  replay(*graph);
  EXPECT_EQ(to_host<float>(c), std::vector<float>(count, 4096.0f));
  EXPECT_TRUE(device->synchronize().ok());
}

// Suggestions of cuBLASLt by number; the last stands for those there are not. f32 rows of odd length have none or few.
TEST_F(Graphs, NumberedAlgorithmsAgree) {
  if (const Status available = device->gemm_available(); !available.ok()) {
    GTEST_SKIP() << available.error().message;
  }
  const int64_t m = 64, n = 24;
  for (const int64_t k : {256, 77}) {
    const Memory ones = to_device(std::vector<float>(m * k, 1.0f)), c = to_device(std::vector<float>(m * n));
    for (const int algo : {0, 1, 2, 3, 8, 100}) {
      ASSERT_TRUE(device->fill(c.ptr(), 0xff, c.bytes()).ok());
      GemmCall call = gemm_of(ones, ones, c, m, n, k);
      call.algo = algo;
      const auto graph = build({call});
      ASSERT_NE(graph, nullptr);
      replay(*graph);
      EXPECT_EQ(to_host<float>(c), std::vector<float>(m * n, static_cast<float>(k))) << "algorithm " << algo;
    }
  }
}

// Library calls at both ends, next to each other, and one of nothing; kernels after them that ask to start early.
TEST_F(Graphs, ProductsInARowAndEarlyStartersAfterThem) {
  if (const Status available = device->gemm_available(); !available.ok()) {
    GTEST_SKIP() << available.error().message;
  }
  const int64_t n = 64;
  const int count = static_cast<int>(n * n);
  const Memory ones = to_device(std::vector<float>(count, 1.0f)), b = to_device(std::vector<float>(count));
  const Memory c = to_device(std::vector<float>(count)), d = to_device(std::vector<float>(count));
  const Memory e = to_device(std::vector<float>(count));
  const auto graph =
      build({gemm_of(ones, ones, b, n, n, n), gemm_of(b, ones, c, n, n, n),
             scale(as<float>(c), as<float>(d), count, 0.5f, /*programmatic=*/true),
             scale(as<float>(d), as<float>(d), count, 0.5f, /*programmatic=*/true), gemm_of(ones, ones, b, 0, n, n),
             scale(as<float>(d), as<float>(d), count, 0.5f, /*programmatic=*/true), gemm_of(d, ones, e, n, n, n)});
  ASSERT_NE(graph, nullptr);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device->fill(c.ptr(), 0, c.bytes()).ok());
    ASSERT_TRUE(device->fill(e.ptr(), 0, e.bytes()).ok());
    replay(*graph);
    EXPECT_EQ(to_host<float>(b), std::vector<float>(count, 64.0f));
    EXPECT_EQ(to_host<float>(c), std::vector<float>(count, 4096.0f));
    EXPECT_EQ(to_host<float>(d), std::vector<float>(count, 512.0f));
    EXPECT_EQ(to_host<float>(e), std::vector<float>(count, 32768.0f));
  }
  EXPECT_TRUE(graph->native_nodes(4).empty());
  for (const size_t index : {0, 1, 6}) {
    EXPECT_GE(graph->native_nodes(index).size(), 1u) << index;
  }
}

// Many products get other addresses between two replays, and kernels with them.
TEST_F(Graphs, NewAddressesForProductsKeepTheGraphsNodes) {
  if (const Status available = device->gemm_available(); !available.ok()) {
    GTEST_SKIP() << available.error().message;
  }
  const int64_t n = 64;
  const int count = static_cast<int>(n * n);
  const Memory ones = to_device(std::vector<float>(count, 1.0f)), twos = to_device(std::vector<float>(count, 2.0f));
  const Memory c = to_device(std::vector<float>(count)), d = to_device(std::vector<float>(count));
  const auto works = [&](const Memory& a, const Memory& to) {
    return std::vector<Work>{FillCall{to.ptr(), 0, to.bytes()}, gemm_of(a, ones, to, n, n, n),
                             scale(as<float>(to), as<float>(to), count, 2.0f), gemm_of(a, a, to, n, n, n),
                             scale(as<float>(to), as<float>(to), count, 0.5f, /*programmatic=*/true)};
  };
  const auto graph = build(works(ones, c));
  ASSERT_NE(graph, nullptr);
  replay(*graph);
  EXPECT_EQ(to_host<float>(c), std::vector<float>(count, 32.0f));
  const std::vector<void*> kernel_nodes = graph->native_nodes(2), product_nodes = graph->native_nodes(1);
  for (int round = 0; round < 4; ++round) {
    const bool other = round % 2 == 0;
    const std::vector<Work> changed = other ? works(twos, d) : works(ones, c);
    for (size_t i = 0; i < changed.size(); ++i) {
      const Status updated = graph->update(i, changed[i]);
      ASSERT_TRUE(updated.ok()) << updated.error().message;
    }
    ASSERT_TRUE(device->fill(c.ptr(), 0xff, c.bytes()).ok());
    ASSERT_TRUE(device->fill(d.ptr(), 0xff, d.bytes()).ok());
    replay(*graph);
    EXPECT_EQ(to_host<float>(other ? d : c), std::vector<float>(count, other ? 128.0f : 32.0f)) << round;
    // The same products elsewhere: an update in place, not another instance.
    EXPECT_EQ(graph->native_nodes(2), kernel_nodes) << round;
    EXPECT_EQ(graph->native_nodes(1), product_nodes) << round;
  }
  // Patching one kernel after all that still means the right node.
  ASSERT_TRUE(graph->update(4, scale(as<float>(c), as<float>(d), count, 0.25f, /*programmatic=*/true)).ok());
  replay(*graph);
  EXPECT_EQ(to_host<float>(d), std::vector<float>(count, 16.0f));
}

TEST_F(Graphs, NativeNodesAreDistinctAndOnePerKernel) {
  if (const Status available = device->gemm_available(); !available.ok()) {
    GTEST_SKIP() << available.error().message;
  }
  const Memory ones = to_device(std::vector<float>(64 * 64, 1.0f)), c = to_device(std::vector<float>(64 * 64));
  const auto graph = build({scale(as<float>(ones), as<float>(ones), 64, 1.0f), gemm_of(ones, ones, c, 64, 64, 64),
                            scale(as<float>(c), as<float>(c), 64, 1.0f)});
  ASSERT_NE(graph, nullptr);
  std::set<void*> all;
  size_t total = 0;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<void*> nodes = graph->native_nodes(i);
    EXPECT_GE(nodes.size(), 1u) << i;
    total += nodes.size();
    all.insert(nodes.begin(), nodes.end());
  }
  EXPECT_EQ(graph->native_nodes(0).size(), 1u);
  EXPECT_EQ(all.size(), total);
  EXPECT_TRUE(graph->native_nodes(3).empty());
}

TEST_F(Graphs, UpdatesOfAnotherKindAreRefused) {
  const Memory x = to_device(std::vector<float>(32, 1.0f));
  const auto graph = build({scale(as<float>(x), as<float>(x), 32, 2.0f)});
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->update(0, FillCall{x.ptr(), 0, 4}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(graph->update(1, scale(as<float>(x), as<float>(x), 32, 2.0f)).error().kind, ErrorKind::kInvalid);
  KernelLaunch other = scale(as<float>(x), as<float>(x), 32, 2.0f);
  other.kernel = load("probe/probe.h", "probe<64>", sizeof(ProbeArgs));
  EXPECT_EQ(graph->update(0, other).error().kind, ErrorKind::kInvalid);
  replay(*graph);  // still usable
  EXPECT_EQ(to_host<float>(x), std::vector<float>(32, 2.0f));
}

TEST_F(Graphs, AChangeThatNeedsARebuildIsDoneOnce) {
  const Memory x = to_device(std::vector<float>(32, 1.0f));
  const auto graph = build({scale(as<float>(x), as<float>(x), 32, 2.0f), FillCall{x.ptr(), 0, 0},
                            scale(as<float>(x), as<float>(x), 32, 3.0f)});
  ASSERT_NE(graph, nullptr);
  replay(*graph);
  EXPECT_EQ(to_host<float>(x), std::vector<float>(32, 6.0f));
  Status changed = graph->update(2, scale(as<float>(x), as<float>(x), 32, 5.0f, /*programmatic=*/true));
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  changed = graph->update(1, FillCall{x.ptr(), 0, 4});  // an empty node becomes a fill
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  replay(*graph);
  std::vector<float> expected(32, 60.0f);
  expected[0] = 0;
  EXPECT_EQ(to_host<float>(x), expected);
}

// A kernel that may start early waits before it reads; with the hardware's overlap it really starts before its
// predecessor, which spins, has ended.
class Overlap : public Graphs {
 protected:
  static constexpr int64_t kSpinNs = 200'000;

  void SetUp() override {
    Graphs::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    kernel_ = load("probe/primitives.h", "probe_overlap<true>", sizeof(ProbeOverlapArgs));
    ASSERT_NE(kernel_, nullptr);
    numbers_ = to_device(std::vector<float>(3 * 32, 1.0f));
    times_ = to_device(std::vector<int64_t>(4));
  }

  std::vector<Work> works(bool programmatic) {
    float* numbers = as<float>(numbers_);
    int64_t* times = as<int64_t>(times_);
    KernelLaunch first = make_launch(kernel_, ProbeOverlapArgs{numbers, numbers + 32, times, kSpinNs}, 1, 32);
    KernelLaunch second = make_launch(kernel_, ProbeOverlapArgs{numbers + 32, numbers + 64, times + 2, 0}, 1, 32);
    second.programmatic = programmatic;
    return {first, second};
  }

  // The second kernel's start minus the first one's end.
  int64_t gap_ns() {
    const auto numbers = to_host<float>(numbers_);
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(numbers[32 + i], 2.0f);
      EXPECT_EQ(numbers[64 + i], 3.0f);
    }
    const auto times = to_host<int64_t>(times_);
    return times[2] - times[1];
  }

  const Kernel* kernel_ = nullptr;
  Memory numbers_, times_;
};

TEST_F(Overlap, GraphEdgesLetTheSuccessorStartEarly) {
  for (const bool programmatic : {false, true}) {
    const auto graph = build(works(programmatic));
    ASSERT_NE(graph, nullptr);
    ASSERT_TRUE(device->fill(numbers_.ptr() + 128, 0, 256).ok());
    replay(*graph);
    const int64_t gap = gap_ns();
    if (programmatic && device->info().cc >= 90) {
      EXPECT_LT(gap, 0) << "the second kernel did not start early";
    } else {
      EXPECT_GE(gap, 0);
    }
  }
}

TEST_F(Overlap, StreamsLetTheSuccessorStartEarly) {
  for (const bool programmatic : {false, true}) {
    ASSERT_TRUE(device->fill(numbers_.ptr() + 128, 0, 256).ok());
    for (const Work& work : works(programmatic)) {
      ASSERT_TRUE(stream->run(work).ok());
    }
    ASSERT_TRUE(stream->synchronize().ok());
    const int64_t gap = gap_ns();
    if (programmatic && device->info().cc >= 90) {
      EXPECT_LT(gap, 0) << "the second kernel did not start early";
    } else {
      EXPECT_GE(gap, 0);
    }
  }
}

}  // namespace
}  // namespace cudabk
