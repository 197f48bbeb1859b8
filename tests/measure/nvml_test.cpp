#include "measure/nvml.h"

#include <gtest/gtest.h>

namespace cudabk {
namespace {

TEST(Nvml, OnlyReasonsThatSlowTheGpuAreNamed) {
  EXPECT_TRUE(throttle_reason_names(0).empty());
  EXPECT_TRUE(throttle_reason_names(0x1 | 0x2).empty());  // idle; clocks set by the user
  EXPECT_EQ(throttle_reason_names(0x4 | 0x40),
            (std::vector<std::string>{"software power cap", "hardware thermal slowdown"}));
}

TEST(Nvml, ForeignProcesses) {
  EXPECT_EQ(count_foreign({}, 7), 0);
  EXPECT_EQ(count_foreign({7}, 7), 0);
  EXPECT_EQ(count_foreign({7, 8, 9}, 7), 2);
  EXPECT_EQ(count_foreign({4711}, 7), 0);  // a container sees us under another number
  EXPECT_EQ(count_foreign({4711, 4712}, 7), 1);
}

TEST(Nvml, TheEmulatedDeviceHasNone) {
  const auto device = open_device("host", {});
  ASSERT_TRUE(device.ok());
  const auto monitor = GpuMonitor::create(**device);
  ASSERT_FALSE(monitor.ok());
  EXPECT_EQ(monitor.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace cudabk
