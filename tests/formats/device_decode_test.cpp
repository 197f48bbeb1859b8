// The kernels' decoders of every format on the emulated device, bit for bit against the golden files.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "convert/args.h"
#include "device/device.h"
#include "formats/slices.h"
#include "gold.h"

namespace cudabk::test {
namespace {

std::vector<DType> device_formats() {
  std::vector<DType> types;
  for (const DTypeTraits& row : kDTypes) {
    if (has_device_format(row.type)) {
      types.push_back(row.type);
    }
  }
  return types;
}

class DeviceDecode : public testing::TestWithParam<DType> {
 protected:
  static constexpr int kThreads = 256;  // of the kernel

  void SetUp() override {
    auto device = open_device("host", {});
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
  }

  // Decodes `rows` rows of blocks to f32. A failure leaves the result empty.
  std::vector<float> decode(const std::vector<uint8_t>& blocks, int64_t rows) {
    const DType type = GetParam();
    const SliceShape shape = slice_shape(type);
    const int64_t row_bytes = static_cast<int64_t>(blocks.size()) / rows;
    const int64_t k = row_bytes / block_bytes(type) * block_elements(type);
    auto kernel = device_->kernel({"convert/convert.h",
                                   std::string("dequantize<DType::") + dtype_traits(type).name + ", DType::f32>",
                                   sizeof(DequantizeArgs)});
    auto src = device_->allocate(static_cast<int64_t>(blocks.size()));
    auto dst = device_->allocate(rows * k * 4);
    auto stream = device_->create_stream();
    if (!kernel.ok() || !src.ok() || !dst.ok() || !stream.ok()) {
      ADD_FAILURE() << (kernel.ok() ? "no memory" : kernel.error().message);
      return {};
    }
    DequantizeArgs args{};
    args.weights = reinterpret_cast<const uint8_t*>(src->ptr());
    args.dst = reinterpret_cast<uint8_t*>(dst->ptr());
    args.row_stride = row_bytes;
    args.m = rows;
    args.a2 = 1;
    args.rows = rows;
    args.k = static_cast<int32_t>(k);
    const auto slices = static_cast<uint32_t>(k / shape.elements());
    KernelLaunch launch{*kernel,
                        {(slices + kThreads - 1) / kThreads, static_cast<uint32_t>(rows), 1},
                        {kThreads, 1, 1},
                        static_cast<uint32_t>(kThreads * shape.elements() * 4),
                        false,
                        std::vector<std::byte>(sizeof(args))};
    std::memcpy(launch.args.data(), &args, sizeof(args));
    std::vector<float> out(static_cast<size_t>(rows * k));
    EXPECT_TRUE(device_->upload(src->ptr(), blocks.data(), static_cast<int64_t>(blocks.size())).ok());
    const Status ran = (*stream)->run(launch);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
    EXPECT_TRUE(device_->download(out.data(), dst->ptr(), rows * k * 4).ok());
    return out;
  }
  static void expect_equal(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_FALSE(got.empty());
    for (size_t i = 0; i < got.size(); ++i) {
      if (want[i] == 0) {
        ASSERT_EQ(got[i], 0) << "element " << i;  // the sign of a zero is free
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
            << "element " << i << ": " << got[i] << " instead of " << want[i];
      }
    }
  }
  static std::string gold_name() {
    std::string name = dtype_traits(GetParam()).name;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return "r4c1024/" + name;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(DeviceDecode, TheMatrix) {
  const Gold gold(gold_name());
  ASSERT_TRUE(gold.valid());
  expect_equal(decode(gold.section<uint8_t>("q"), gold.rows()), gold.section<float>("deq"));
}

TEST_P(DeviceDecode, RandomBlocks) {
  const Gold gold(gold_name());
  ASSERT_TRUE(gold.valid());
  expect_equal(decode(gold.section<uint8_t>("fq"), 1), gold.section<float>("fdeq"));
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceDecode, testing::ValuesIn(device_formats()),
                         [](const auto& info) { return std::string(dtype_traits(info.param).name); });

TEST(DeviceFormats, AreTheOnesOfTheFileFormatWithProducts) { EXPECT_EQ(device_formats().size(), 20U); }

}  // namespace
}  // namespace cudabk::test
