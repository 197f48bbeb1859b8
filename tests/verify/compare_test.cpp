// The metric: planted errors must be caught, legitimate rounding must pass.
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cudabk::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kRows = 256;
constexpr int64_t kCols = 64;

class CompareTest : public testing::Test {
 protected:
  // A product's result: normal values; `got` carries rounding errors of `relative` of their size.
  void make(double relative, uint64_t seed = 1) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<double> normal;
    want.clear();
    got.clear();
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      want.push_back(normal(rng));
      got.push_back(want.back() + relative * normal(rng));
    }
  }
  Comparison run(double bound = 5e-4) const { return compare(got, want, {.bound = bound, .row_length = kRows}); }

  std::vector<double> want, got;
};

TEST_F(CompareTest, RoundingWithinTheBoundPasses) {
  make(0.014);  // NMSE 2e-4, as from eight-bit activations
  const Comparison c = run();
  EXPECT_TRUE(c.pass()) << c.reason;
  EXPECT_NEAR(c.nmse, 0.014 * 0.014, 2e-5);
  EXPECT_EQ(c.count, kRows * kCols);
}

TEST_F(CompareTest, ErrorsAboveTheBoundFail) {
  make(0.03);
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, OneWrongElementFails) {
  make(0.01);
  got[1234] = -got[1234] + 1;  // NMSE stays below the bound
  const Comparison c = run();
  EXPECT_LT(c.nmse, c.bound);
  EXPECT_FALSE(c.pass());
  EXPECT_EQ(c.worst, 1234);
  EXPECT_EQ(c.got, got[1234]);
  EXPECT_EQ(c.want, want[1234]);
}

TEST_F(CompareTest, AColumnNeverWrittenFails) {
  make(0.001);
  std::fill_n(got.begin(), kRows, 0.0);
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, AWrongSmallColumnBesideLargeOnesFails) {
  make(0.001);
  for (size_t i = 0; i < kRows; ++i) {
    want[i] *= 1e-4;
    got[i] *= 1e-4;
  }
  EXPECT_TRUE(run().pass()) << run().reason;
  std::fill_n(got.begin(), kRows, 0.0);
  const Comparison c = run();
  EXPECT_LT(c.nmse, c.bound);
  EXPECT_FALSE(c.pass());
}

TEST_F(CompareTest, SwappedRowsFail) {
  make(0.001);
  for (int64_t j = 0; j < kCols; ++j) {
    std::swap(got[static_cast<size_t>(j * kRows + 3)], got[static_cast<size_t>(j * kRows + 4)]);
  }
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, ShiftedColumnsFail) {
  make(0);
  std::rotate(got.begin(), got.begin() + kRows, got.end());
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, NanOnEitherSideFails) {
  make(0);
  got[77] = kNan;
  const Comparison c = run();
  EXPECT_FALSE(c.pass());
  EXPECT_EQ(c.worst, 77);
  make(0);
  want[5] = kNan;
  EXPECT_FALSE(run().pass());
  got[5] = kNan;
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, InfinitiesMustMatch) {
  make(0);
  got[9] = kInf;
  EXPECT_FALSE(run().pass());
  want[9] = kInf;
  EXPECT_TRUE(run().pass());
  EXPECT_EQ(run().nmse, 0);
  want[9] = 1e39;  // beyond f32: the device can only say infinity
  EXPECT_TRUE(run().pass());
  got[9] = FLT_MAX;
  EXPECT_TRUE(run().pass());
  got[9] = -kInf;
  EXPECT_FALSE(run().pass());
  got[9] = 1;
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, NonFiniteInputsOnlyTouchTheirOwnElements) {
  make(0);
  CompareOptions options{.bound = 5e-4, .row_length = kRows, .non_finite_allowed = true};
  want[10] = kNan;
  got[10] = kInf;
  EXPECT_TRUE(compare(got, want, options).pass());
  got[10] = 0;
  EXPECT_FALSE(compare(got, want, options).pass());
  got[10] = kNan;
  got[11] = kNan;
  EXPECT_FALSE(compare(got, want, options).pass());
}

TEST_F(CompareTest, ZerosAreComparedExactly) {
  want.assign(64, 0);
  got.assign(64, 0);
  EXPECT_TRUE(run().pass());
  got[3] = 1e-30;
  EXPECT_FALSE(run().pass());
  make(0);
  got.assign(want.size(), 0);
  EXPECT_FALSE(run().pass());
}

TEST_F(CompareTest, BoundZeroMeansEqual) {
  make(0);
  EXPECT_TRUE(run(0).pass());
  got[0] = std::nextafter(got[0], 10);
  EXPECT_FALSE(run(0).pass());
}

// One element that is small by cancellation: its error counts against the size of the summed products.
TEST_F(CompareTest, MagnitudeOfSingleElements) {
  want = {0.01};
  got = {0.02};
  EXPECT_FALSE(compare(got, want, {.bound = 5e-4}).pass());
  EXPECT_TRUE(compare(got, want, {.bound = 5e-4, .magnitude = 1}).pass());
  got = {1.0};
  EXPECT_FALSE(compare(got, want, {.bound = 5e-4, .magnitude = 1}).pass());
}

}  // namespace
}  // namespace cudabk::test
