#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/file.h"
#include "families.h"
#include "ops/mul_mat_families.h"

namespace cudabk {
namespace {

namespace fs = std::filesystem;
using test::device;
using test::family_set;
using test::file;
using test::kTable;
using test::problem;

class ProfileFiles : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cudabk_profiles_" + std::to_string(getpid()) + "_" +
                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  static FamilySet real_families() {
    FamilySet set;
    set.by_op["mul_mat"] = mul_mat_families();
    return set;
  }

  fs::path dir_;
};

Profile made_for(const DeviceInfo& info) {
  Profile p;
  p.device = {info.name, info.arch, info.sm_count, info.l2_bytes};
  p.constants = built_in_constants();
  Rule rule;
  rule.use = "any";
  p.tables["mul_mat"]["q4_K"].rules = {rule};
  return p;
}

// Known fault: a name rule for one card broke the exact look-up of others.
TEST_F(ProfileFiles, OddDeviceNamesSurviveSaveAndLoad) {
  const std::vector<std::string> names = {"NVIDIA H200",
                                          "NVIDIA H100 80GB HBM3",
                                          "NVIDIA H100 PCIe",
                                          "NVIDIA GeForce RTX 5090",
                                          "NVIDIA H200 MIG 1g.18gb",
                                          "Some/Card\\With \"quotes\"",
                                          "Karte \u00fc\u4e2d",
                                          "../../etc/passwd",
                                          "nvidia h200",
                                          "/"};
  for (const std::string& name : names) {
    const DeviceInfo info = device(name);
    const std::string file_name = profile_file_name(info);
    EXPECT_EQ(fs::path(file_name).filename().string(), file_name) << "a name must not leave the folder";
    ASSERT_TRUE(write_file_atomic(dir_ / file_name, profile_to_json(made_for(info))).ok());
    const auto found = find_profile(info, "", dir_, family_set());
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->source, (dir_ / file_name).string()) << name;
    EXPECT_EQ(found->device.name, name);
    EXPECT_TRUE(found->warnings.empty()) << found->warnings[0];
  }
}

TEST_F(ProfileFiles, NamesThatLookAlikeHaveTheirOwnFiles) {
  EXPECT_NE(profile_file_name(device("Card A/B")), profile_file_name(device("Card A B")));
  EXPECT_NE(profile_file_name(device("Card A/B")), profile_file_name(device("Card A.B")));
  EXPECT_NE(profile_file_name(device("H200", "sm_90a", 90, 132)), profile_file_name(device("H200", "sm_90a", 90, 66)));
  EXPECT_EQ(profile_file_name(device()), "nvidia-h200-sm_90a-132.json");
}

TEST_F(ProfileFiles, AnExplicitFileForAnotherDeviceIsRefused) {
  const fs::path path = write("p.json", file(kTable));
  EXPECT_TRUE(find_profile(device(), path, "", family_set()).ok());
  for (const DeviceInfo& other :
       {device("NVIDIA H100"), device("NVIDIA H200", "sm_89", 89), device("NVIDIA H200", "sm_90a", 90, 66)}) {
    const auto found = find_profile(other, path, "", family_set());
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(found.error().message.starts_with(path.string() + ": /device: ")) << found.error().message;
  }
}

TEST_F(ProfileFiles, AnExplicitFileForAnArchitectureServesItsGpus) {
  const fs::path path = write("p.json", file(kTable, R"("name": "*", "arch": "sm_90a")"));
  EXPECT_TRUE(find_profile(device("whatever"), path, "", family_set()).ok());
  EXPECT_FALSE(find_profile(device("whatever", "sm_80", 80), path, "", family_set()).ok());
}

TEST_F(ProfileFiles, AnExplicitFileIsReadStrictlyAndMustExist) {
  EXPECT_FALSE(find_profile(device(), write("p.json", file(R"("q4_K": [{"use": "gone"}])")), "", family_set()).ok());
  EXPECT_FALSE(find_profile(device(), dir_ / "absent.json", "", family_set()).ok());
}

// Known fault: a file copied from other hardware was used without a word.
TEST_F(ProfileFiles, AFoundFileForAnotherDeviceIsIgnoredWithAWarning) {
  write(profile_file_name(device()), file(kTable, R"("name": "NVIDIA H200", "arch": "sm_89", "sm_count": 132)"));
  const auto found = find_profile(device(), "", dir_, real_families());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->source.starts_with("built-in")) << found->source;
  ASSERT_FALSE(found->warnings.empty());
  EXPECT_NE(found->warnings[0].find("made for sm_89"), std::string::npos) << found->warnings[0];
}

// The next place of the lookup: the GPU's shipped profile where there is one, else the architecture's defaults.
TEST_F(ProfileFiles, ABrokenFoundFileFallsThroughToTheDefaults) {
  const std::pair<DeviceInfo, std::string_view> expected[] = {
      {device("NVIDIA H200"), "built-in nvidia-h200-sm_90a-132.json"},
      {device("NVIDIA H100 80GB HBM3"), "built-in sm_90a"},
  };
  for (const auto& [info, source] : expected) {
    for (const std::string& text : {std::string(), file(kTable).substr(0, 60), std::string("\xff\xfe{")}) {
      write(profile_file_name(info), text);
      const auto found = find_profile(info, "", dir_, real_families());
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->source, source);
      EXPECT_EQ(found->warnings.size(), 1U);
    }
  }
}

TEST_F(ProfileFiles, LookupGoesFromTheFileToTheDeviceToTheArchitecture) {
  const FamilySet set = real_families();
  EXPECT_EQ(find_profile(device("x", "sm_80", 80), "", "", set)->source, "built-in sm_80");
  EXPECT_EQ(find_profile(device("x", "sm_87", 87), "", "", set)->source, "built-in sm_86");
  EXPECT_EQ(find_profile(device("x", "sm_103a", 103), "", "", set)->source, "built-in sm_100a");
  EXPECT_EQ(find_profile(device("x", "sm_121a", 121), "", "", set)->source, "built-in sm_120a");
  const auto oldest = find_profile(device("x", "sm_61", 61), "", "", set);
  EXPECT_EQ(oldest->source, "built-in defaults");
  EXPECT_EQ(oldest->constants, built_in_constants());

  const std::string table = R"("q4_K": [{"use": "dequant_gemm"}])";
  write("sm_80.json", file(table, R"("name": "*", "arch": "sm_80")"));
  EXPECT_EQ(find_profile(device("x", "sm_80", 80), "", dir_, set)->source, (dir_ / "sm_80.json").string());
  const fs::path own = write(profile_file_name(device("x", "sm_80", 80)),
                             file(table, R"("name": "x", "arch": "sm_80", "sm_count": 132)"));
  EXPECT_EQ(find_profile(device("x", "sm_80", 80), "", dir_, set)->source, own.string());
  const fs::path named = write("named.json", file(table, R"("name": "*", "arch": "sm_80")"));
  EXPECT_EQ(find_profile(device("x", "sm_80", 80), named, dir_, set)->source, named.string());
}

TEST_F(ProfileFiles, AnotherDriverIsAWarning) {
  DeviceInfo info = device();
  info.driver_text = "600.1";
  std::string text = file(kTable);
  text.insert(1, R"("made_by": {"driver": "580.1"}, )");
  const auto found = find_profile(info, write("p.json", text), "", family_set());
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->warnings.size(), 1U);
  EXPECT_NE(found->warnings[0].find("580.1"), std::string::npos);
}

TEST_F(ProfileFiles, EveryEmbeddedProfileParsesStrictlyAndCoversEverything) {
  std::set<std::string> names;
  for (const EmbeddedProfile& e : embedded_profiles()) {
    names.insert(std::string(e.name));
    const auto profile = parse_profile(e.json, std::string(e.name), real_families());
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    for (const char* key : {"f32", "f16", "bf16", "q4_0", "q8_0", "q4_K", "q6_K"}) {
      const Table& table = profile->table({"mul_mat", key, {}});
      ASSERT_FALSE(table.rules.empty()) << e.name << " " << key;
      EXPECT_TRUE(table.rules.back().when.empty()) << e.name << " " << key;
      for (const int64_t n : {1, 8, 9, 64, 65, 128, 129, 4096}) {
        for (const int64_t batch : {1, 4}) {
          const DeviceInfo info = device("x", profile->device.arch, arch_number(profile->device.arch));
          const Problem p{"mul_mat", key, {{"m", 64}, {"n", n}, {"k", 4096}, {"batch", batch}}};
          const auto choice = choose(p, info, table, mul_mat_families());
          ASSERT_TRUE(choice.ok()) << p.text();
          const bool by_table = choice->rule >= 0 || batch > 1;
          EXPECT_TRUE(by_table) << e.name << " " << p.text();
        }
      }
    }
    Profile pruned = *profile;
    EXPECT_TRUE(prune_profile(pruned, real_families()).empty()) << e.name;
  }
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    EXPECT_TRUE(names.contains(std::string(arch) + ".json")) << arch;
  }
}

TEST_F(ProfileFiles, TwoWritersOfOneFileKeepEachOthersTables) {
  const fs::path path = dir_ / "shared.json";
  const auto writer = [&](const std::string& key, const std::string& use) {
    for (int i = 0; i < 50; ++i) {
      Profile mine = made_for(device());
      mine.tables["mul_mat"].clear();
      Rule rule;
      rule.use = use;
      mine.tables["mul_mat"][key].rules = {rule};
      ASSERT_TRUE(update_profile_file(path, mine, mine, family_set()).ok());
    }
  };
  std::thread other(writer, "q6_K", "tile");
  writer("q4_K", "any");
  other.join();
  const auto merged = find_profile(device(), path, "", family_set());
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  EXPECT_EQ(merged->tables.at("mul_mat").at("q4_K").rules[0].use, "any");
  EXPECT_EQ(merged->tables.at("mul_mat").at("q6_K").rules[0].use, "tile");
}

TEST_F(ProfileFiles, UpdatingSetsACorruptFileAsideAndRefusesAnotherDevice) {
  const fs::path path = write("p.json", "{ half");
  const auto updated = update_profile_file(path, made_for(device()), made_for(device()), family_set());
  ASSERT_TRUE(updated.ok()) << updated.error().message;
  EXPECT_EQ(updated->warnings.size(), 1U);
  EXPECT_EQ(read_file(path.string() + ".corrupt").value(), "{ half");
  const Profile foreign = made_for(device("NVIDIA H100"));
  const auto other = update_profile_file(path, foreign, foreign, family_set());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("NVIDIA H100"), std::string::npos);
  EXPECT_EQ(find_profile(device(), path, "", family_set())->device.name, "NVIDIA H200");
}

}  // namespace
}  // namespace cudabk
