#include "bench/cases.h"

#include <gtest/gtest.h>

#include "bench/layer.h"
#include "bench/shapes.h"
#include "bench/suites.h"
#include "bench/test_run.h"

namespace cudabk {
namespace {

DeviceInfo host() {
  DeviceInfo device;
  device.arch = "sm_80";
  device.cc = 80;
  device.max_shared_bytes = 160 << 10;
  device.emulated = true;
  return device;
}

DeviceInfo gpu() {
  DeviceInfo device = host();
  device.emulated = false;
  return device;
}

const OpDef& mul_mat_op() { return **find_op("mulmat"); }

Selection with_axes(std::map<std::string, std::string> axes) {
  Selection selection;
  selection.axes = std::move(axes);
  return selection;
}

TEST(Cases, DefaultsOfTheCommandLineDocument) {
  const auto on_gpu = select_cases(mul_mat_op(), with_axes({{"type", "Q4_k"}}), gpu());
  ASSERT_TRUE(on_gpu.ok());
  EXPECT_EQ(on_gpu->size(), 20U);  // k = 4096, 14336 and ten column counts
  EXPECT_EQ(on_gpu->front().params.text(), "type=q4_K m=4096 n=1 k=4096");
  EXPECT_EQ(on_gpu->back().params.text(), "type=q4_K m=4096 n=2048 k=14336");
  const auto on_host = select_cases(mul_mat_op(), with_axes({}), host());
  ASSERT_TRUE(on_host.ok());
  EXPECT_EQ(on_host->size(), 3U);
  EXPECT_EQ(on_host->back().params.text(), "type=q4_K m=256 n=64 k=1024");
}

TEST(Cases, BadInputNamesTheChoices) {
  const std::pair<std::map<std::string, std::string>, const char*> table[] = {
      {{{"type", "q9_K"}}, "valid: f32"},
      {{{"heads", "3"}}, "its axes: --type, -m"},
      {{{"n", "-4"}}, "negative"},
      {{{"k", "100"}}, "not a multiple of 256"},
      {{{"m", "99999999999999999999"}}, "2^63"},
      {{{"m", "9223372036854775807"}}, "outside"},
      {{{"n", "4:1"}}, "backwards"},
  };
  for (const auto& [axes, expected] : table) {
    const auto cases = select_cases(mul_mat_op(), with_axes(axes), host());
    ASSERT_FALSE(cases.ok()) << expected;
    EXPECT_EQ(cases.error().kind, ErrorKind::kInvalid) << expected;
    EXPECT_NE(cases.error().message.find(expected), std::string::npos) << cases.error().message;
  }
}

TEST(Cases, FiltersWorkOnKeys) {
  Selection selection = with_axes({{"n", "1,8,64"}});
  selection.filters = {"n=(8|64) "};
  selection.excludes = {"n=64"};
  const auto cases = select_cases(mul_mat_op(), selection, host());
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 1U);
  EXPECT_EQ(cases->front().params.get("n"), "8");
  selection.filters = {"no such case"};
  const auto none = select_cases(mul_mat_op(), selection, host());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kNothing);
  selection.filters = {"("};
  EXPECT_EQ(select_cases(mul_mat_op(), selection, host()).error().kind, ErrorKind::kInvalid);
}

TEST(Cases, ModesAreAxes) {
  Selection selection = with_axes({{"n", "1"}});
  selection.launch = Mode::kBoth;
  selection.fusion = Mode::kBoth;
  selection.cache = Mode::kBoth;
  const auto cases = select_cases(mul_mat_op(), selection, host());
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->size(), 8U);
  std::set<std::string> keys;
  for (const BenchCase& c : *cases) {
    keys.insert(c.key());
  }
  EXPECT_EQ(keys.size(), 8U);
}

TEST(Cases, VariantsByName) {
  Selection selection = with_axes({{"n", "1"}});
  selection.variant = "all";
  const auto all = select_cases(mul_mat_op(), selection, host());
  ASSERT_TRUE(all.ok());
  EXPECT_GE(all->size(), 3U);  // mmvq, mmq, dequant_gemm
  const Result<Variant> tuned = parse_variant("MMVQ:rows=2", mul_mat_op());
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  EXPECT_EQ(tuned->config.at("rows"), 2);
  EXPECT_EQ(*parse_variant(tuned->text(), mul_mat_op()), *tuned);
  for (const char* bad : {"mmvx", "mmvq:row=2", "mmvq:rows=3", "mmvq:rows=", "auto:rows=1"}) {
    const Result<Variant> variant = parse_variant(bad, mul_mat_op());
    ASSERT_FALSE(variant.ok()) << bad;
    EXPECT_EQ(variant.error().kind, ErrorKind::kInvalid);
  }
}

TEST(Shapes, EverySetParsesAndSelects) {
  const auto models = model_shapes();
  ASSERT_TRUE(models.ok()) << models.error().message;
  EXPECT_GE(models->size(), 5U);
  Selection selection = with_axes({{"n", "1"}});
  selection.shapes = "LLAMA-3.1-8B";
  const auto cases = select_cases(mul_mat_op(), selection, gpu());
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  ASSERT_EQ(cases->size(), 5U);  // two of the six matrices have one shape
  EXPECT_EQ(cases->front().note, "attn_q+attn_out");
  const auto layer = select_cases(layer_target(), selection, gpu());
  ASSERT_FALSE(layer.ok());  // the layer has no axis n
  const auto unknown = find_shapes("gpt-9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("llama-3.1-8b"), std::string::npos);
}

TEST(Shapes, RefuseBrokenFiles) {
  for (const char* text : {"", "[]", "{\"schema\": \"cudabk-shapes/2\"}", "{\"schema\": \"cudabk-shapes/1\"}"}) {
    const auto shapes = parse_shapes(text, "some.json");
    ASSERT_FALSE(shapes.ok());
    EXPECT_EQ(shapes.error().message.rfind("some.json: ", 0), 0U) << shapes.error().message;
  }
}

TEST(Suites, AllExpand) {
  for (const SuiteInfo& suite : suites()) {
    for (const DeviceInfo& device : {host(), gpu()}) {
      const auto cases = suite_cases(std::string(suite.name), Selection{}, device);
      ASSERT_TRUE(cases.ok()) << suite.name << ": " << cases.error().message;
      EXPECT_GT(cases->size(), 1U);
      std::set<std::string> keys;
      for (const BenchCase& c : *cases) {
        EXPECT_TRUE(keys.insert(c.key()).second) << c.key();
      }
    }
  }
  EXPECT_EQ(suite_cases("smok", Selection{}, host()).error().kind, ErrorKind::kInvalid);
}

TEST(TestCases, CoverEveryTargetAndFamily) {
  Selection selection;
  selection.variant = "all";
  const std::vector<const OpDef*> targets = test_targets();
  for (const char* device : {"host", "host@sm_90a"}) {
    const auto cases = test_cases(targets, selection, open_device(device, {}).value()->info());
    ASSERT_TRUE(cases.ok()) << cases.error().message;
    std::set<std::string> seen_targets, families;
    for (const BenchCase& c : *cases) {
      seen_targets.insert(c.target);
      families.insert(c.variant.family);
    }
    EXPECT_EQ(seen_targets.size(), targets.size());
    for (const Family& family : mul_mat_op().families()) {
      const bool of_sm_90a = family.name == "frag_tile" || family.name == "mmsf_group";
      const size_t on_this_device = of_sm_90a && device == std::string("host") ? 0 : 1;
      EXPECT_EQ(families.count(family.name), on_this_device) << family.name << " on " << device;
    }
  }
}

TEST(TestCases, AxesKeepTheCasesWithTheseValues) {
  Selection selection = with_axes({{"type", "q6_K"}, {"n", "1,8"}});
  selection.variant = "auto";
  const std::vector<const OpDef*> targets{&mul_mat_op()};
  const auto cases = test_cases(targets, selection, host());
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  for (const BenchCase& c : *cases) {
    EXPECT_EQ(c.params.get("type"), "q6_K");
    EXPECT_TRUE(c.params.get("n") == "1" || c.params.get("n") == "8");
  }
  selection.axes = {{"heads", "3"}};
  EXPECT_EQ(test_cases(targets, selection, host()).error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace cudabk
