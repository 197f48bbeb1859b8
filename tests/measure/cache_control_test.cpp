#include "measure/cache_control.h"

#include <gtest/gtest.h>

namespace cudabk {
namespace {

constexpr int64_t kGb = 1'000'000'000;

FootprintRequest h200() {
  FootprintRequest r;
  r.weight_bytes = 33'030'144;  // q4_K 4096 x 14336
  r.touched_bytes = r.weight_bytes + 57'344 + 16'384;
  r.l2_bytes = 62'914'560;
  r.free_bytes = 140 * kGb;
  return r;
}

TEST(CacheControl, RequirementIsTheLargerOfFloorAndL2) {
  EXPECT_EQ(cold_bytes_required(0), 256'000'000);
  EXPECT_EQ(cold_bytes_required(6 << 20), 256'000'000);
  EXPECT_EQ(cold_bytes_required(126LL << 20), 4 * (126LL << 20));
}

TEST(CacheControl, ColdIsProven) {
  const auto plan = plan_footprint(h200());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->label, "cold");
  EXPECT_EQ(plan->copies, 8);
  EXPECT_GE(plan->distinct_bytes, plan->required_bytes);
  EXPECT_LT((plan->copies - 1) * 33'030'144, plan->required_bytes);  // and no copy too many
  EXPECT_GE(plan->l2_ratio, 4);
  EXPECT_TRUE(plan->reason.empty());
}

TEST(CacheControl, ShortMemoryRefusesTheLabel) {
  FootprintRequest request = h200();
  request.free_bytes = 120'000'000;
  const auto plan = plan_footprint(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->label, "warm");
  EXPECT_EQ(plan->copies, 3);
  EXPECT_NE(plan->reason.find("120.0 MB"), std::string::npos) << plan->reason;
  request.free_bytes = 20'000'000;
  const auto none = plan_footprint(request);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kUnfit);
  EXPECT_NE(none.error().message.find("20.0 MB"), std::string::npos) << none.error().message;
}

TEST(CacheControl, OnlyWhatIsReadCountsAndAllOfItNeedsRoom) {
  FootprintRequest request = h200();  // a table of which a copy reads 1 MB
  request.weight_bytes = request.touched_bytes = 1'000'000;
  request.memory_bytes = 500'000'000;
  const auto plan = plan_footprint(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->label, "warm");
  EXPECT_EQ(plan->copies, 252);  // of 256: 90 % of the free memory
  request.memory_bytes = 400'000'000;
  EXPECT_EQ(plan_footprint(request)->label, "cold");
  EXPECT_EQ(plan_footprint(request)->copies, 256);
}

TEST(CacheControl, TinyOpsAreNotRepeatedForever) {
  FootprintRequest request = h200();
  request.weight_bytes = 144;
  request.touched_bytes = 144 + 1024 + 4;
  const auto plan = plan_footprint(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->label, "warm");
  EXPECT_EQ(plan->copies, 4096);
  EXPECT_FALSE(plan->reason.empty());
}

TEST(CacheControl, OpsWithoutWeightsCountEverythingTheyTouch) {
  FootprintRequest request = h200();
  request.weight_bytes = 0;
  request.touched_bytes = 64'000'000;
  const auto plan = plan_footprint(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->copies, 4);
  EXPECT_EQ(plan->distinct_bytes, 256'000'000);
  request.touched_bytes = 0;
  EXPECT_FALSE(plan_footprint(request).ok());
}

TEST(CacheControl, HotAndEmulated) {
  FootprintRequest request = h200();
  request.mode = CacheMode::kHot;
  EXPECT_EQ(plan_footprint(request)->label, "hot");
  EXPECT_EQ(plan_footprint(request)->copies, 1);
  EXPECT_EQ(plan_footprint(request)->required_bytes, 0);
  request.mode = CacheMode::kCold;
  request.emulated = true;
  EXPECT_EQ(plan_footprint(request)->label, "emulated");
  EXPECT_LE(plan_footprint(request)->copies, 2);
  EXPECT_EQ(*parse_cache_mode("hot"), CacheMode::kHot);
  EXPECT_FALSE(parse_cache_mode("lukewarm").ok());
}

}  // namespace
}  // namespace cudabk
