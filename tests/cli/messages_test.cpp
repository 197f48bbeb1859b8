// What is said, and on which stream.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "process.h"

namespace cudabk::test {
namespace {

// With a document on stdout, what is for people goes to stderr.
TEST(Messages, MergedProfileOnStdoutIsJson) {
  const auto profile = [](const std::string& family) {
    return R"({"schema": "cudabk-profile/1", "made_by": {}, "constants": {}, "evidence": {},
      "device": {"name": "*", "arch": "sm_80", "sm_count": 0, "l2_bytes": 0},
      "tables": {"mul_mat": {"*": [{"use": ")" +
           family + R"("}]}}})";
  };
  const std::string place =
      (std::filesystem::temp_directory_path() / ("cudabk_messages_test_" + std::to_string(getpid()))).string();
  const std::string a = place + "_a.json", b = place + "_b.json";
  ASSERT_TRUE(write_file_atomic(a, profile("mmvq")).ok());
  ASSERT_TRUE(write_file_atomic(b, profile("dequant_gemm")).ok());
  const ProcessResult r = run_cudabk({"profile", "merge", a, b, "-o", "-"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(nlohmann::json::parse(r.out, nullptr, false).is_object()) << r.out;
  EXPECT_NE(r.err.find("+ mul_mat * any: dequant_gemm"), std::string::npos) << r.err;
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

TEST(Messages, TestSaysWhyCasesWereSkipped) {
  const ProcessResult r = run_cudabk({"test", "mulmat", "--type", "f16", "--variant", "mmq"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("skipped 108, for example: "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("f16 is not a quantized type"), std::string::npos) << r.out;
}

}  // namespace
}  // namespace cudabk::test
