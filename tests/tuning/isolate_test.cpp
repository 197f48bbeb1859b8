#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/file.h"
#include "tuning/isolate.h"
#include "tuning/journal.h"

namespace cudabk {
namespace {

namespace fs = std::filesystem;

// The child is a shell script that appends announcements to the journal and then dies in some way.
class Supervise : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cudabk_isolate_" + std::to_string(getpid()) + "_" +
                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
    options_.journal = dir_ / "j.jsonl";
    std::ofstream(options_.journal).flush();
    options_.environment = environ;
    options_.notice = [this](std::string_view line) { notices_.emplace_back(line); };
  }
  void TearDown() override { fs::remove_all(dir_); }

  // A file with the line that announces a candidate for n columns.
  std::string announcement(int64_t n) {
    const fs::path path = dir_ / ("begin" + std::to_string(n));
    JournalEntry e;
    e.op = "mul_mat";
    e.key = "q4_K";
    e.shape = {{"n", n}};
    e.candidate.family = "mmvq";
    auto journal = Journal::open(path, false);
    EXPECT_TRUE(journal->begin(e).ok());
    return path.string();
  }
  Result<int> run(const std::string& script) {
    options_.command = {"/bin/sh", "-c", "J='" + options_.journal.string() + "'; " + script};
    return supervise(options_);
  }

  fs::path dir_;
  SuperviseOptions options_;
  std::vector<std::string> notices_;
};

TEST_F(Supervise, AnOrderlyExitIsHandedOn) {
  EXPECT_EQ(run("exit 0").value(), 0);
  EXPECT_EQ(run("exit 5").value(), 5);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Supervise, ACrashIsPinnedOnTheCandidateAndTheRunGoesOn) {
  const std::string begin = announcement(1);
  const auto status = run("if grep -q quarantine $J; then exit 0; fi; cat " + begin + " >> $J; kill -9 $$");
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(*status, 0);
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("mul_mat q4_K n=1 mmvq"), std::string::npos) << notices_[0];
  EXPECT_NE(notices_[0].find("signal 9"), std::string::npos);
}

TEST_F(Supervise, AHangIsKilled) {
  options_.hang_s = 0.3;
  const std::string begin = announcement(1);
  const auto status = run("if grep -q quarantine $J; then exit 0; fi; cat " + begin + " >> $J; exec sleep 60");
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_NE(read_file(options_.journal).value().find("no progress"), std::string::npos);
}

TEST_F(Supervise, AnInterruptionIsHandedOnAndWaitedFor) {
  std::atomic<bool> interrupted{false};
  options_.interrupted = &interrupted;
  const auto when_it_listens = [&](const std::string& script) {
    std::ofstream(options_.journal).flush();
    interrupted = false;
    std::thread interrupter([&] {
      while (fs::file_size(options_.journal) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      interrupted = true;
    });
    const Result<int> status = run(script);
    interrupter.join();
    return status.value();
  };
  EXPECT_EQ(when_it_listens("trap 'exit 130' INT; echo > $J; while :; do sleep 0.02; done"), 130);
  options_.hang_s = 0.3;  // one that does not listen is killed
  EXPECT_EQ(when_it_listens("trap '' INT; echo > $J; exec sleep 60"), 70);
}

TEST_F(Supervise, TheSameCandidateTwiceEndsIt) {
  const auto status = run("cat " + announcement(1) + " >> $J; kill -9 $$");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("again"), std::string::npos) << status.error().message;
}

TEST_F(Supervise, ADeathOutsideOfCandidatesEndsIt) {
  EXPECT_FALSE(run("kill -9 $$").ok());
  EXPECT_EQ(run("exit 70").value(), 70);
}

TEST_F(Supervise, AMissingProgramIsSaid) {
  options_.command = {(dir_ / "absent").string()};
  EXPECT_FALSE(supervise(options_).ok());
}

}  // namespace
}  // namespace cudabk
