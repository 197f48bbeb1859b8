// The cases of `cudabk test mulmat` with the products by warp groups, on an emulated device that poses as sm_90a.
#include <gtest/gtest.h>

#include "bench/test_run.h"
#include "ops/mul_mat.h"
#include "shuffled_device.h"

namespace cudabk::test {
namespace {

constexpr uint64_t kCaseSeed = 20261203;

struct VariantCases {
  const char* variant;
  const char* types;  // regex
  int least;          // cases of these types that the family runs
};

void PrintTo(const VariantCases& c, std::ostream* out) { *out << c.variant << " " << c.types; }

class WarpGroupCases : public testing::TestWithParam<VariantCases> {};

TEST_P(WarpGroupCases, MatchTheReference) {
  const VariantCases& wanted = GetParam();
  const auto device = open_shuffled_device(kCaseSeed, "host@sm_90a");
  const Profile profile;  // the variant decides
  const std::vector<const OpDef*> targets{&mul_mat_op()};
  Selection selection;
  selection.variant = wanted.variant;
  selection.filters = {std::string("type=(") + wanted.types + ") "};
  const auto cases = test_cases(targets, selection, device->info(), &profile);
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  TestOptions options;
  options.seed = kCaseSeed;
  RunObserver observer;
  const auto run = run_tests(*device, profile, *cases, options, observer);
  ASSERT_TRUE(run.ok()) << run.error().message;
  const std::string family = std::string(wanted.variant).substr(0, std::string(wanted.variant).find(':'));
  int passed = 0;
  for (const CaseResult& row : run->cases) {
    if (row.status == CaseStatus::kUnsupported) {
      EXPECT_NE(row.message.find(family + " cannot run: "), std::string::npos) << row.key << ": " << row.message;
    } else {
      EXPECT_EQ(row.status, CaseStatus::kOk) << row.key << ": " << row.message;
      passed += row.family == family;
    }
  }
  EXPECT_GE(passed, wanted.least) << "of " << run->cases.size();
}

INSTANTIATE_TEST_SUITE_P(
    Variants, WarpGroupCases,
    testing::Values(VariantCases{"frag_tile", "q4_0|q4_K|q6_K|iq4_nl|q2_K|iq2_xs", 60},
                    VariantCases{"frag_tile:cols=32,split=1", "q5_1|iq1_m", 30},
                    VariantCases{"frag_tile:cols=32,groups=4,split=2", "iq4_nl", 20},
                    VariantCases{"frag_tile:cols=128,split=8", "q2_K", 6}, VariantCases{"mmsf_group", "f16|bf16", 12},
                    VariantCases{"mmsf_group:cols=16,groups=1,split=2", "f16|bf16", 50},
                    VariantCases{"mmsf_group:cols=32,groups=1,depth=256,split=1", "f16|bf16", 30}));

}  // namespace
}  // namespace cudabk::test
