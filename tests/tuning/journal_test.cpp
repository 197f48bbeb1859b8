#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "tuning/journal.h"

namespace cudabk {
namespace {

namespace fs = std::filesystem;

class JournalFile : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cudabk_journal_" + std::to_string(getpid()) + "_" +
                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    path_ = dir_ / "tune.jsonl";
  }
  void TearDown() override { fs::remove_all(dir_); }

  static JournalEntry entry(int64_t n, double ns) {
    JournalEntry e;
    e.device = "NVIDIA \"X\"";
    e.arch = "sm_90a";
    e.sm_count = 132;
    e.op = "mul_mat";
    e.key = "q4_K";
    e.shape = {{"m", 64}, {"n", n}, {"k", 256}};
    e.candidate = {"mmvq", {{"rows", 2}, {"warps", 4}}};
    e.code = "sha256:ab";
    e.ns = ns;
    e.low_ns = ns * 0.99;
    e.high_ns = ns * 1.01;
    e.samples = 20;
    return e;
  }

  fs::path dir_, path_;
};

TEST_F(JournalFile, EveryFieldSurvivesALine) {
  JournalEntry e = entry(8, 1234.5678901234567);
  e.stage = JournalEntry::Stage::kConfirm;
  e.against = "any";
  e.ratio = 0.1 + 0.2;
  e.ratio_low = 0.29;
  e.ratio_high = 0.31;
  const auto back = parse_journal_line(journal_line(e));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->identity(), e.identity());
  EXPECT_EQ(back->ns, e.ns);
  EXPECT_EQ(back->ratio, e.ratio);
  EXPECT_EQ(back->samples, 20);
  EXPECT_EQ(back->shape, e.shape);
  EXPECT_EQ(journal_line(*back), journal_line(e));
}

TEST_F(JournalFile, IdentityChangesWithEveryPart) {
  const JournalEntry base = entry(8, 1);
  std::vector<JournalEntry> others(9, base);
  others[0].device = "Y";
  others[1].arch = "sm_90";
  others[2].sm_count = 66;
  others[3].op = "mul_mat_id";
  others[4].key = "q6_K";
  others[5].shape[1].second = 9;
  others[6].candidate.config["rows"] = 1;
  others[7].code = "sha256:cd";
  others[8].stage = JournalEntry::Stage::kQuarantine;
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(others[i].identity(), base.identity()) << i;
  }
}

TEST_F(JournalFile, ALineCutShortByAKillIsSkippedAndTheRestIsKept) {
  {
    auto journal = Journal::open(path_, false);
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    ASSERT_TRUE(journal->add(entry(1, 10)).ok());
    ASSERT_TRUE(journal->add(entry(2, 20)).ok());
  }
  const std::string whole = read_file(path_).value();
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    auto journal = Journal::open(path_, false);
    ASSERT_TRUE(journal.ok()) << cut;
    ASSERT_TRUE(journal->add(entry(3, 30)).ok());
    const size_t lines = static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<long>(cut), '\n'));
    auto again = Journal::open(path_, false);
    ASSERT_TRUE(again.ok());
    EXPECT_GE(again->size(), lines + 1) << cut;
    ASSERT_NE(again->find(entry(3, 0).identity()), nullptr) << "cut at " << cut;
    EXPECT_EQ(again->find(entry(3, 0).identity())->ns, 30);
  }
}

TEST_F(JournalFile, TheLatestEntryCountsAndAFreshJournalForgets) {
  {
    auto journal = Journal::open(path_, false);
    ASSERT_TRUE(journal->add(entry(1, 10)).ok());
    ASSERT_TRUE(journal->add(entry(1, 11)).ok());
  }
  auto journal = Journal::open(path_, false);
  EXPECT_EQ(journal->size(), 1U);
  EXPECT_EQ(journal->find(entry(1, 0).identity())->ns, 11);
  auto fresh = Journal::open(path_, true);
  EXPECT_EQ(fresh->size(), 0U);
  EXPECT_TRUE(fs::exists(path_.string() + ".old"));
}

TEST_F(JournalFile, GarbageIsCountedNotFatal) {
  fs::create_directories(dir_);
  std::ofstream(path_) << "not json\n{\"stage\": \"screen\"}\n\xff\xfe\n" << journal_line(entry(1, 10)) << "\n";
  auto journal = Journal::open(path_, false);
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->size(), 1U);
  EXPECT_EQ(journal->skipped_lines(), 3U);
}

TEST_F(JournalFile, AFileOfAnotherKindIsLeftAlone) {
  fs::create_directories(dir_);
  for (const std::string& other : {std::string("{\n  \"schema\": \"cudabk-profile/1\"\n}\n"),
                                   std::string("{\"schema\": 1}"), std::string("q4_K,16,1\n"), std::string(1, '\0')}) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << other;
    const auto journal = Journal::open(path_, false);
    ASSERT_FALSE(journal.ok()) << other;
    EXPECT_EQ(journal.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(fs::file_size(path_), other.size());
  }
}

TEST_F(JournalFile, TheCandidateThatWasRunningIsQuarantined) {
  {
    auto journal = Journal::open(path_, false);
    ASSERT_TRUE(journal->add(entry(1, 10)).ok());
    ASSERT_TRUE(journal->begin(entry(2, 0)).ok());
  }
  const auto quarantined = quarantine_last(path_, "killed by signal 11");
  ASSERT_TRUE(quarantined.ok()) << quarantined.error().message;
  EXPECT_EQ(quarantined->shape, entry(2, 0).shape);
  auto journal = Journal::open(path_, false);
  JournalEntry wanted = entry(2, 0);
  wanted.stage = JournalEntry::Stage::kQuarantine;
  ASSERT_NE(journal->find(wanted.identity()), nullptr);
  EXPECT_EQ(journal->find(wanted.identity())->reason, "killed by signal 11");
  // Nothing was begun since: the next death blames no candidate.
  const auto none = quarantine_last(path_, "again");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kNothing);
}

}  // namespace
}  // namespace cudabk
