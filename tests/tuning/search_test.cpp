#include <gtest/gtest.h>

#include "synthetic.h"

namespace cudabk {
namespace {

struct Recorder {
  std::vector<double> ns;
  std::map<size_t, int64_t> samples;
  std::set<size_t> out;

  TimeFn fn() {
    return [this](size_t i, int64_t n) -> Result<std::optional<double>> {
      if (out.contains(i)) {
        return std::optional<double>();
      }
      samples[i] += n;
      return std::optional<double>(ns[i]);
    };
  }
};

TEST(Search, ExhaustiveGivesEveryCandidateAllSamples) {
  Recorder r{{5, 3, 4, 1, 2}};
  const auto ranked = search_candidates(5, {Strategy::kExhaustive, 2, 3, 24}, r.fn());
  ASSERT_TRUE(ranked.ok());
  ASSERT_EQ(ranked->size(), 5U);
  EXPECT_EQ((*ranked)[0].index, 3U);
  EXPECT_EQ((*ranked)[4].index, 0U);
  for (const auto& [i, n] : r.samples) {
    EXPECT_EQ(n, 24) << i;
  }
}

TEST(Search, HalvingSpendsMostOnTheBest) {
  Recorder r;
  for (int i = 0; i < 16; ++i) {
    r.ns.push_back(i == 0 ? 100 : i);
  }
  const auto ranked = search_candidates(16, {Strategy::kHalving, 2, 3, 24}, r.fn());
  ASSERT_TRUE(ranked.ok());
  EXPECT_EQ((*ranked)[0].index, 1U);
  EXPECT_EQ((*ranked)[1].index, 2U);
  EXPECT_EQ(r.samples[15], 3);
  EXPECT_GT(r.samples[1], 4 * r.samples[15]);
}

TEST(Search, CandidatesThatAreOutAreLeftOut) {
  Recorder r{{5, 1, 4}};
  r.out = {1};
  const auto ranked = search_candidates(3, {Strategy::kHalving, 2, 3, 24}, r.fn());
  ASSERT_EQ(ranked->size(), 2U);
  EXPECT_EQ((*ranked)[0].index, 2U);
}

TEST(Search, NothingToSearch) {
  Recorder r;
  EXPECT_TRUE(search_candidates(0, {}, r.fn())->empty());
  EXPECT_FALSE(parse_strategy("random").ok());
  EXPECT_EQ(*parse_strategy("halving"), Strategy::kHalving);
}

TEST(SearchSpace, HoldsEveryConfigurationOnceWithTheFallbackFirst) {
  const auto space = search_space({"mul_mat", "q4_K", {}}, DeviceInfo{}, test::families());
  ASSERT_EQ(space.size(), 6U);
  EXPECT_EQ(space[0].text(), "vec warps=4");
  EXPECT_EQ(std::set<Candidate>(space.begin(), space.end()).size(), 6U);
}

TEST(Shapes, UnseenOnesAreNotAmongTheSeen) {
  DeviceInfo gpu;
  for (const bool emulated : {false, true}) {
    gpu.emulated = emulated;
    const auto seen = default_tune_shapes(gpu);
    const auto unseen = unseen_shapes(seen);
    EXPECT_FALSE(unseen.empty());
    for (const TuneShape& s : unseen) {
      EXPECT_EQ(std::count(seen.begin(), seen.end(), s), 0) << shape_label(s);
      EXPECT_EQ(test::extent(s, "k") % 256, 0) << shape_label(s);
    }
  }
}

}  // namespace
}  // namespace cudabk
