// Which variants are compiled ahead, and how the outcome is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/kernel_sweep.h"

namespace cudabk {
namespace {

std::vector<KernelVariant> variants(std::string_view arch, const VariantSelection& selection = {}) {
  auto found = kernel_variants(arch, selection);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? std::move(found).value() : std::vector<KernelVariant>();
}

TEST(Variants, EveryArchitectureHasDefaultsAndNoDuplicates) {
  for (const std::string_view arch : kArchitectures) {
    const auto all = variants(arch);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const KernelVariant& v) {
      return v.by_default && v.key.entry.starts_with("mmvq<DType::q4_K") && v.key.args_bytes != 0;
    })) << arch;
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const KernelVariant& v) { return !v.by_default; })) << arch;
    std::set<std::string> names;
    for (const KernelVariant& v : all) {
      EXPECT_TRUE(names.insert(v.key.header + normalized_entry(v.key.entry)).second) << v.key.entry;
    }
  }
}

TEST(Variants, FilterAndSamples) {
  for (const KernelVariant& v : variants("sm_80", {.filter = "^rms_norm/.*<256"})) {
    EXPECT_TRUE(v.key.entry.starts_with("rms_norm<256")) << v.key.entry;
  }
  const auto plain = variants("sm_80"), sampled = variants("sm_80", {.samples = 12, .seed = 5}),
             again = variants("sm_80", {.samples = 12, .seed = 5});
  EXPECT_GT(sampled.size(), plain.size());
  EXPECT_LE(sampled.size(), plain.size() + 12 + 3);  // a plan may bring a second kernel
  // What only sampling found is told apart: it may spill.
  EXPECT_TRUE(std::none_of(plain.begin(), plain.end(), [](const KernelVariant& v) { return v.sampled; }));
  const auto drawn = std::count_if(sampled.begin(), sampled.end(), [](const KernelVariant& v) { return v.sampled; });
  EXPECT_EQ(static_cast<size_t>(drawn), sampled.size() - plain.size());
  for (const KernelVariant& v : sampled) {
    EXPECT_FALSE(v.sampled && v.shipped) << v.key.entry;
    EXPECT_TRUE(v.shipped || !v.by_default) << v.key.entry;
  }
  EXPECT_TRUE(
      std::any_of(plain.begin(), plain.end(), [](const KernelVariant& v) { return v.shipped && !v.by_default; }));
  ASSERT_EQ(sampled.size(), again.size());
  for (size_t i = 0; i < sampled.size(); ++i) {
    EXPECT_EQ(sampled[i].key, again[i].key);
  }
  // As `kernels list` prints it, and without its spaces.
  for (const char* form : {"frag/wide.h frag_wide<DType::q4_K, 1, 1, 8, 2>", "frag_wide<DType::q4_K,1,1,8,2>"}) {
    EXPECT_EQ(variants("sm_80", {.filter = form}).size(), 1U) << form;
  }
  EXPECT_EQ(kernel_variants("sm_80", {.filter = "["}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(kernel_variants("sm_81", {}).error().kind, ErrorKind::kInvalid);
}

TEST(Variants, OutcomesAreToldApart) {
  const KernelVariant bf16{{"probe/primitives.h", "probe_mma<MmaForm::kBf16x16x8x16>", 0}};
  const KernelVariant broken{{"probe/primitives.h", "absent<1>", 0}};
  const std::vector<VariantJob> jobs{{"sm_75", bf16}, {"sm_80", bf16}, {"sm_80", broken}};
  KernelCompiler compiler(CompileOptions{});
  std::vector<VariantOutcome> outcomes;
  ASSERT_TRUE(build_variants(compiler, jobs, 1, [&](const VariantResult& result) {
                outcomes.push_back(result.outcome);
                return true;
              }).ok());
  EXPECT_EQ(outcomes, (std::vector<VariantOutcome>{VariantOutcome::kNotApplicable, VariantOutcome::kCompiled,
                                                   VariantOutcome::kFailed}));
  int told = 0;
  ASSERT_TRUE(build_variants(compiler, jobs, 2, [&](const VariantResult&) {
                ++told;
                return false;  // stop after the first
              }).ok());
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace cudabk
