// The tuner and explain on the emulated device, with real kernels.
#include <gtest/gtest.h>

#include "tuning/device_bench.h"
#include "tuning/explain.h"
#include "tuning/family_set.h"
#include "tuning/tuner.h"

namespace cudabk {
namespace {

class OnHost : public testing::Test {
 protected:
  void SetUp() override {
    auto device = open_device("host", {});
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
    auto profile = find_profile(device_->info(), "", "", family_set());
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    profile_ = std::move(profile).value();
    op_ = find_op("mulmat").value();
  }
  Explanation explained(const CaseParams& params) {
    ExplainOptions options;
    options.roofs = data_sheet_roofs(device_->info().arch).value();
    auto e = explain(*device_, profile_, *op_, params, options);
    EXPECT_TRUE(e.ok()) << e.error().message;
    return std::move(e).value();
  }

  std::unique_ptr<Device> device_;
  Profile profile_;
  const OpDef* op_ = nullptr;
};

TEST_F(OnHost, TheFamilySetKnowsOpsDimsAndKeys) {
  const FamilySet set = family_set();
  ASSERT_TRUE(set.by_op.contains("mul_mat"));
  const auto& dims = set.dims.at("mul_mat");
  EXPECT_NE(std::find(dims.begin(), dims.end(), "batch"), dims.end());
  const auto& keys = set.keys.at("mul_mat");
  EXPECT_NE(std::find(keys.begin(), keys.end(), "q4_K"), keys.end());
  for (const EmbeddedProfile& e : embedded_profiles()) {  // with dims and keys checked as well
    const auto profile = parse_profile(e.json, std::string(e.name), set);
    EXPECT_TRUE(profile.ok()) << profile.error().message;
  }
}

TEST_F(OnHost, TunesATinyShapeAndExplainShowsTheNewRule) {
  TuneOptions options;
  options.keys = {"q4_K"};
  options.shapes = cross_shapes({{64, 256}}, {1, 8});
  options.search.top = 2;
  options.search.full_samples = 6;
  options.confirm_rounds = 6;
  options.refine_rounds = 1;
  auto factory = DeviceBenchFactory::create(*device_, *op_, profile_, 42);
  ASSERT_TRUE(factory.ok()) << factory.error().message;
  Journal journal;
  auto report = tune(**factory, profile_, journal, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->quarantined.empty()) << report->quarantined[0].reason;
  EXPECT_GT(report->timings, 4);
  EXPECT_EQ(report->keys[0].points.front().problem.key, "q4_K");
  EXPECT_EQ(report->profile.device.name, device_->info().name);
  EXPECT_TRUE(parse_profile(profile_to_json(report->profile), "tuned", family_set()).ok());

  // A rule as the tuner writes them, whatever this machine's timings were.
  Rule rule;
  rule.use = "dequant_gemm";
  rule.when = {{"n", {1, 1}}};
  rule.code = rule_code(*device_, *op_, profile_, "q4_K", rule);
  rule.evidence = "made up";
  EXPECT_TRUE(rule.code.starts_with("sha256:")) << rule.code;
  Table& table = profile_.tables["mul_mat"]["q4_K"];
  table = profile_.table({"mul_mat", "q4_K", {}});
  table.rules.insert(table.rules.begin(), rule);
  const Explanation e = explained(tune_case("q4_K", {{"m", 64}, {"n", 1}, {"k", 256}}));
  ASSERT_EQ(e.choices.size(), 1U);
  EXPECT_EQ(e.choices[0].choice.family, "dequant_gemm");
  EXPECT_EQ(e.choices[0].rule, "n 1: dequant_gemm");
  EXPECT_FALSE(e.choices[0].stale);
  table.rules[0].code = "sha256:other";
  EXPECT_TRUE(explained(tune_case("q4_K", {{"m", 64}, {"n", 1}, {"k", 256}})).choices[0].stale);
}

TEST_F(OnHost, ExplainSaysWhatRunsAndWhy) {
  const Explanation e = explained(tune_case("q4_K", {{"m", 4096}, {"n", 16}, {"k", 14336}}));
  ASSERT_EQ(e.choices.size(), 1U);
  EXPECT_EQ(e.choices[0].choice.family, "frag_wide");
  ASSERT_FALSE(e.choices[0].choice.passed_over.empty());
  EXPECT_NE(e.choices[0].choice.passed_over[0].second.find("n = 16"), std::string::npos);
  ASSERT_FALSE(e.launches.empty());
  EXPECT_GT(e.launches.back().grid.count(), 0U);
  EXPECT_EQ(e.limit, "memory");
  EXPECT_GT(e.predicted_ns, 0);
  const std::string text = explanation_text(e);
  for (const char* word : {"layout    weights frag", "problem", "rule", "variant", "passed", "launch 1", "grid",
                           "bytes", "limit", "predicted", "data sheet", "not measured"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  EXPECT_NE(explanation_json(e).find("\"cudabk-explain/1\""), std::string::npos);
}

TEST_F(OnHost, ExplainSaysWhichLayoutWeightsHaveAndWhatIsUnpacked) {
  CaseParams view = tune_case("q4_K", {{"m", 40}, {"n", 2}, {"k", 256}});
  view.set("rows", "45");  // from row 5 on: not a whole strip
  const Explanation unpacked = explained(view);
  ASSERT_EQ(unpacked.layouts.size(), 1U);
  EXPECT_EQ(unpacked.layouts[0].layout, "frag");
  EXPECT_GT(unpacked.layouts[0].stored_bytes, unpacked.layouts[0].raw_bytes);
  EXPECT_EQ(unpacked.choices[0].choice.family, "mmvq");
  EXPECT_EQ(unpacked.launches[0].label, "unpack q4_K");
  CaseParams raw = tune_case("q4_K", {{"m", 40}, {"n", 2}, {"k", 256}});
  raw.set("layout", "raw");
  EXPECT_EQ(explained(raw).choices[0].choice.family, "mmvq");
  EXPECT_EQ(explained(raw).layouts[0].note, "asked for");
  const Explanation few = explained(tune_case("q4_K", {{"m", 5}, {"n", 2}, {"k", 256}}));
  EXPECT_EQ(few.layouts[0].layout, "raw");
  EXPECT_NE(few.layouts[0].note.find("less than a strip"), std::string::npos);
}

TEST_F(OnHost, ExplainOfAnEmptyProductHasNoLaunches) {
  const Explanation e = explained(tune_case("q4_K", {{"m", 64}, {"n", 0}, {"k", 256}}));
  EXPECT_TRUE(e.launches.empty());
  EXPECT_NE(explanation_text(e).find("none"), std::string::npos);
}

TEST_F(OnHost, ShapesThatDoNotBuildAreErrors) {
  auto factory = DeviceBenchFactory::create(*device_, *op_, profile_, 42);
  const auto bench = (*factory)->open("q4_K", {{"m", 64}, {"n", 1}, {"k", 100}});
  ASSERT_FALSE(bench.ok());
  EXPECT_EQ(bench.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace cudabk
