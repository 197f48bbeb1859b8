// The op list is complete: every op can be found, described, built, lowered and evaluated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernel_text.h"
#include "ops/op_def.h"
#include "ops/op_harness.h"
#include "reference/reference.h"

namespace cudabk::test {
namespace {

// An axis value of every axis as `bench` would take it: the first of each sweep.
CaseParams defaults(const OpDef& op, bool emulated) {
  CaseParams params;
  for (const Axis& axis : op.axes()) {
    const auto& values = emulated ? axis.host_values : axis.gpu_values;
    if (!values.empty()) {
      params.set(axis.name, values.front());
    }
  }
  return params;
}

DeviceInfo device_with(int sm_count) {
  DeviceInfo info;
  info.name = "test device";
  info.arch = "sm_80";
  info.cc = 80;
  info.sm_count = sm_count;
  return info;
}

TEST(Registry, FindsByNameAndAliasInAnyCase) {
  for (const OpDef* op : all_ops()) {
    std::string upper(op->name());
    std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
    const auto found = find_op(upper);
    ASSERT_TRUE(found.ok()) << upper;
    EXPECT_EQ(*found, op);
    if (!op->alias().empty()) {
      const auto by_alias = find_op(op->alias());
      ASSERT_TRUE(by_alias.ok());
      EXPECT_EQ(*by_alias, op);
    }
  }
}

TEST(Registry, UnknownNameListsTheValidOnes) {
  const auto found = find_op("rms_nrom");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kInvalid);
  for (const OpDef* op : all_ops()) {
    EXPECT_NE(found.error().message.find(op->name()), std::string::npos) << op->name();
  }
}

TEST(Registry, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name()).second) << op->name();
    EXPECT_FALSE(op->summary().empty()) << op->name();
  }
}

TEST(Registry, EveryOpHasAxesAndBuildsItsDefaults) {
  for (const OpDef* op : all_ops()) {
    EXPECT_FALSE(op->axes().empty()) << op->name();
    for (const bool emulated : {false, true}) {
      Graph graph;
      const auto built = op->build(graph, defaults(*op, emulated));
      ASSERT_TRUE(built.ok()) << op->name() << ": " << built.error().message;
      EXPECT_EQ(op_of(**built), op);
      EXPECT_TRUE(op->supports(**built, device_with(132))) << op->name();
      EXPECT_GT(op->cost(**built).bytes, 0) << op->name();
    }
  }
}

TEST(Registry, CasesNameOnlyAxesAndTheirValues) {
  for (const OpDef* op : all_ops()) {
    ASSERT_FALSE(op->test_cases().empty()) << op->name();
    for (const CaseParams& params : op->test_cases()) {
      for (const auto& [name, value] : params.values) {
        const auto axes = op->axes();
        const auto axis = std::find_if(axes.begin(), axes.end(), [&, n = name](const Axis& a) { return a.name == n; });
        ASSERT_NE(axis, axes.end()) << op->name() << " has no axis " << name;
        EXPECT_TRUE(axis->allowed.empty() ||
                    std::find(axis->allowed.begin(), axis->allowed.end(), value) != axis->allowed.end())
            << op->name() << ": " << name << "=" << value;
      }
    }
  }
}

TEST(Registry, EveryOpHasAReference) {
  class NoValues final : public Values {
   public:
    std::span<const std::byte> bytes(const Tensor&) const override { return {}; }
  };
  for (const OpDef* op : all_ops()) {
    Graph graph;
    const auto built = op->build(graph, defaults(*op, true));
    ASSERT_TRUE(built.ok());
    Region first;
    first.index = {{{0}, {0}, {0}, {0}}};
    const auto result = evaluate_reference(**built, first, NoValues());
    ASSERT_FALSE(result.ok());  // the leaves have no values; an op without a reference fails otherwise
    EXPECT_NE(result.error().message.find("no values are known"), std::string::npos) << result.error().message;
  }
}

// Whatever a device's size makes of a case, the emulated device must know the variant.
TEST(Registry, CasesUseListedVariantsOnly) {
  std::set<std::string> listed;
  for (const ListedKernel& k : listed_kernels()) {
    listed.insert(fmt::format("{} {}", k.header, k.entry));
  }
  for (const std::string_view name : {"add", "mul", "rms_norm", "swiglu", "cpy", "cont"}) {
    const OpDef& op = **find_op(name);
    for (const int sm_count : {1, 132}) {
      const DeviceInfo info = device_with(sm_count);
      PlainLowerContext context(info);
      for (const CaseParams& params : op.test_cases()) {
        Graph graph;
        const auto built = op.build(graph, params);
        ASSERT_TRUE(built.ok()) << built.error().message;
        for (const Tensor* node : graph.nodes()) {
          if (is_view_op(*node)) {
            continue;
          }
          const auto launches = op_of(*node)->lower(*node, context);
          ASSERT_TRUE(launches.ok()) << launches.error().message;
          for (const Launch& launch : *launches) {
            const auto& key = std::get<KernelWork>(launch.work).key;
            EXPECT_TRUE(listed.contains(fmt::format("{} {}", key.header, normalized_entry(key.entry))))
                << key.entry << " of " << op.name() << " " << params.text();
          }
        }
      }
    }
  }
}

TEST(CaseParamsTest, TextAndLookup) {
  CaseParams params;
  params.set("type", "f16");
  params.set("m", "12");
  params.set("type", "f32");
  EXPECT_EQ(params.text(), "type=f32 m=12");
  EXPECT_EQ(params.get("n"), "");
  EXPECT_EQ(*params.get_int("m"), 12);
  EXPECT_FALSE(params.get_int("n").ok());
  EXPECT_FALSE(params.get_int("type").ok());
}

}  // namespace
}  // namespace cudabk::test
