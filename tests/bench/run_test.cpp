// Runs on the emulated device: what is verified, what is timed, and what one case's error does to the others.
#include "bench/run.h"

#include <gtest/gtest.h>

#include "bench/test_run.h"
#include "ops/op_def.h"

namespace cudabk {
namespace {

// The emulated device, with one bit of every larger download flipped: results that are wrong by a little.
class CorruptingDevice final : public Device {
 public:
  explicit CorruptingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  Result<const Kernel*> kernel(const KernelKey& key) override { return inner_->kernel(key); }
  Status prepare(std::span<const KernelKey> keys) override { return inner_->prepare(keys); }
  Result<Memory> allocate(int64_t bytes) override { return inner_->allocate(bytes); }
  Result<PinnedMemory> allocate_pinned(int64_t bytes) override { return inner_->allocate_pinned(bytes); }
  Result<std::pair<int64_t, int64_t>> memory_free_total() override { return inner_->memory_free_total(); }
  Status upload(DevicePtr dst, const void* src, int64_t bytes) override { return inner_->upload(dst, src, bytes); }
  Status download(void* dst, DevicePtr src, int64_t bytes) override {
    const Status status = inner_->download(dst, src, bytes);
    if (corrupt && status.ok() && bytes == kResultBytes) {
      static_cast<uint8_t*>(dst)[7] ^= 0x40;  // the exponent of the second f32
    }
    return status;
  }
  Status fill(DevicePtr dst, uint8_t value, int64_t bytes) override { return inner_->fill(dst, value, bytes); }
  Result<std::unique_ptr<Stream>> create_stream() override { return inner_->create_stream(); }
  Result<std::unique_ptr<Event>> create_event() override { return inner_->create_event(); }
  Result<std::unique_ptr<ExecGraph>> build_graph(std::span<const Work> works) override {
    return inner_->build_graph(works);
  }
  Status synchronize() override { return inner_->synchronize(); }
  Status gemm_available() override { return inner_->gemm_available(); }

  static constexpr int64_t kRows = 40;
  static constexpr int64_t kResultBytes = kRows * 4;
  bool corrupt = true;

 protected:
  void release(DevicePtr, int64_t) override {}  // memory belongs to the inner device

 private:
  std::unique_ptr<Device> inner_;
};

struct Fixture {
  Fixture() {
    Result<std::unique_ptr<Device>> host = open_device("host", {});
    EXPECT_TRUE(host.ok());
    device = std::make_unique<CorruptingDevice>(std::move(host).value());
    device->corrupt = false;
    profile.source = "empty";
    options.sampler.max_samples = 3;
    options.sampler.min_samples = 2;
    options.sampler.max_time_s = 0.2;
    options.sampler.warmup = {Warmup::Rule::kCount, 1, 0};
  }
  std::vector<BenchCase> cases(std::map<std::string, std::string> axes) const {
    Selection selection;
    selection.axes = std::move(axes);
    auto found = select_cases(**find_op("mul_mat"), selection, device->info());
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
    return std::move(found).value();
  }
  RunResult run(const std::vector<BenchCase>& list) {
    Result<RunResult> result = run_cases(*device, profile, list, options, observer);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return std::move(result).value();
  }

  std::unique_ptr<CorruptingDevice> device;
  Profile profile;
  RunOptions options;
  RunObserver observer;
};

const std::map<std::string, std::string> kSmall = {{"m", "40"}, {"k", "256"}, {"n", "1"}};

TEST(Run, VerifiesThenTimes) {
  Fixture f;
  const RunResult run = f.run(f.cases(kSmall));
  ASSERT_EQ(run.cases.size(), 1U);
  const CaseResult& row = run.cases[0];
  EXPECT_EQ(row.status, CaseStatus::kOk) << row.message;
  EXPECT_TRUE(run.complete);
  EXPECT_TRUE(row.check.done && row.check.passed);
  EXPECT_EQ(row.copies, 2);
  EXPECT_EQ(row.check.elements, 2 * CorruptingDevice::kRows);  // the first and the last op of the replay
  EXPECT_GE(row.samples_ns.size(), 2U);
  EXPECT_EQ(row.launches, 2);
  EXPECT_EQ(row.breakdown.size(), 2U);
  EXPECT_EQ(row.family, "mmvq");
  EXPECT_FALSE(row.cold_proven);  // there is no cold cache here
}

TEST(Run, AWrongResultIsReportedAndNeverTimed) {
  Fixture f;
  f.device->corrupt = true;
  const RunResult run = f.run(f.cases(kSmall));
  ASSERT_EQ(run.cases.size(), 1U);
  EXPECT_EQ(run.cases[0].status, CaseStatus::kWrong);
  EXPECT_TRUE(run.cases[0].samples_ns.empty());
  EXPECT_FALSE(run.cases[0].time_ns());
  EXPECT_NE(run.cases[0].message.find("NMSE"), std::string::npos) << run.cases[0].message;
  EXPECT_EQ(error_kind_of(run.cases[0].status), ErrorKind::kWrongOutput);
}

TEST(Run, ASingleSampleHasNoNoiseAndSaysSo) {
  Fixture f;
  f.options.sampler.max_samples = f.options.sampler.min_samples = 1;
  const RunResult run = f.run(f.cases(kSmall));
  EXPECT_EQ(run.cases[0].flags, std::vector<std::string>{"few samples"});
  EXPECT_TRUE(run.cases[0].time_ns());
  EXPECT_FALSE(run.cases[0].summary->noise_percent);
  f.options.sampler.max_samples = f.options.sampler.min_samples = 3;
  EXPECT_TRUE(f.run(f.cases(kSmall)).cases[0].flags.empty());
}

TEST(Run, UncheckedRowsSaySo) {
  Fixture f;
  f.options.check = CheckMode::kOff;
  const RunResult run = f.run(f.cases(kSmall));
  ASSERT_EQ(run.cases[0].flags.size(), 1U);
  EXPECT_EQ(run.cases[0].flags[0], "unverified");
}

TEST(Run, OneCasesErrorDoesNotStopTheOthers) {
  Fixture f;
  std::vector<BenchCase> list = f.cases({{"m", "1000000"}, {"k", "1000192"}, {"n", "1"}});
  list.push_back(f.cases(kSmall)[0]);
  const RunResult run = f.run(list);
  ASSERT_EQ(run.cases.size(), 2U);
  EXPECT_EQ(run.cases[0].status, CaseStatus::kOutOfMemory) << run.cases[0].message;
  EXPECT_NE(run.cases[0].message.find("GB"), std::string::npos);
  EXPECT_EQ(run.cases[1].status, CaseStatus::kOk) << run.cases[1].message;
}

TEST(Run, EmptyOpsLaunchNothingAndHaveNoTime) {
  Fixture f;
  const RunResult run = f.run(f.cases({{"m", "40"}, {"k", "256"}, {"n", "0"}}));
  EXPECT_EQ(run.cases[0].status, CaseStatus::kOk) << run.cases[0].message;
  EXPECT_EQ(run.cases[0].launches, 0);
  EXPECT_FALSE(run.cases[0].time_ns());
}

TEST(Run, InterruptAndBudgetKeepWhatIsDone) {
  Fixture f;
  const std::atomic<bool> interrupted{true};
  f.options.interrupted = &interrupted;
  RunResult run = f.run(f.cases(kSmall));
  EXPECT_FALSE(run.complete);
  EXPECT_TRUE(run.cases.empty());
  f.options.interrupted = nullptr;
  f.options.budget_s = 1e-9;
  run = f.run(f.cases(kSmall));
  EXPECT_FALSE(run.complete);
  EXPECT_NE(run.incomplete_reason.find("budget"), std::string::npos);
}

TEST(Run, RepetitionsShareAKey) {
  Fixture f;
  f.options.repetitions = 2;
  f.options.order = CaseOrder::kInterleave;
  const RunResult run = f.run(f.cases({{"m", "40"}, {"k", "256"}, {"n", "1,2"}}));
  ASSERT_EQ(run.cases.size(), 4U);
  EXPECT_EQ(run.cases[0].key, run.cases[1].key);
  EXPECT_EQ(run.cases[1].repetition, 1);
  EXPECT_NE(run.cases[1].key, run.cases[2].key);
}

TEST(Test, FindsAWrongElementAndNamesIt) {
  Fixture f;
  f.device->corrupt = true;
  TestOptions options;
  RunObserver observer;
  const Result<RunResult> run = run_tests(*f.device, f.profile, f.cases(kSmall), options, observer);
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->cases.size(), 1U);
  EXPECT_EQ(run->cases[0].status, CaseStatus::kWrong);
  EXPECT_NE(run->cases[0].message.find("[1"), std::string::npos) << run->cases[0].message;
  EXPECT_NE(run->cases[0].command.find("cudabk test mul_mat"), std::string::npos);
}

}  // namespace
}  // namespace cudabk
