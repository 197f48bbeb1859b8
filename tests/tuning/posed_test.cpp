// Emulated devices that pose as other architectures: what the built-in tables choose for them has a kernel and runs.
#include <gtest/gtest.h>

#include <set>

#include "backend/layouts.h"
#include "backend/plan.h"
#include "dispatch/profile.h"
#include "tuning/device_bench.h"
#include "tuning/family_set.h"

namespace cudabk {
namespace {

class Posed : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device_ = open_device(std::string("host@") + GetParam(), {}).value();
    profile_ = find_profile(device_->info(), "", "", family_set()).value();
    op_ = find_op("mul_mat").value();
  }

  std::unique_ptr<Device> device_;
  Profile profile_;
  const OpDef* op_ = nullptr;
};

TEST_P(Posed, EveryChoiceHasAKernel) {
  std::set<std::string> missing;
  const FamilySet families = family_set();
  for (const std::string& type : families.keys.at("mul_mat")) {
    for (const int64_t k : {256, 8448}) {
      for (const int64_t m : {16, 2048}) {
        for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 64, 65, 512}) {
          Graph graph;
          ASSERT_TRUE(op_->build(graph, tune_case(type, {{"m", m}, {"n", n}, {"k", k}})).ok());
          PlanOptions options;
          options.profile = &profile_;
          choose_layouts(graph, device_->info(), options);
          const Result<Plan> plan = make_plan(graph, device_->info(), options);
          ASSERT_TRUE(plan.ok()) << plan.error().message;
          for (const KernelKey& key : plan->kernels()) {
            if (!device_->kernel(key).ok()) {
              missing.insert(key.entry);
            }
          }
        }
      }
    }
  }
  EXPECT_TRUE(missing.empty()) << missing.size() << " of " << GetParam()
                               << " are in no list of host instances, such as " << *missing.begin();
}

// Look-up tables have other sizes on other architectures; kernels and launches must agree on them.
TEST_P(Posed, TablesInSharedMemoryFit) {
  const auto factory = DeviceBenchFactory::create(*device_, *op_, profile_, 42);
  ASSERT_TRUE(factory.ok()) << factory.error().message;
  for (const char* type : {"iq4_xs", "mxfp4", "q4_K"}) {
    for (const int64_t n : {1, 3, 8}) {
      const auto bench = (*factory)->open(type, {{"m", 32}, {"n", n}, {"k", 512}});
      ASSERT_TRUE(bench.ok()) << bench.error().message;
      const Result<Candidate> choice = (*bench)->default_choice();
      ASSERT_TRUE(choice.ok()) << choice.error().message;
      const Status status = (*bench)->verify(*choice);
      EXPECT_TRUE(status.ok()) << type << " " << n << ": " << status.error().message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Posed,
                         testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cudabk
