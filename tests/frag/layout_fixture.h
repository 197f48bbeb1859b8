// A matrix in the `frag` layout on the emulated device, threads in random order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "convert/args.h"
#include "device/device.h"
#include "formats/frag_place.h"
#include "formats/slices.h"
#include "frag/args.h"
#include "graph/init.h"
#include "shuffled_device.h"

namespace cudabk::test {

constexpr uint64_t kLayoutSeed = 20261130;

inline std::vector<DType> frag_types() {
  std::vector<DType> types;
  for (const DTypeTraits& row : kDTypes) {
    if (frag_shape(row.type).exists()) {
      types.push_back(row.type);
    }
  }
  return types;
}

// A matrix of one slice: raw, on the host.
struct Matrix {
  DType type;
  int64_t m, k;
  std::vector<uint8_t> raw;

  FragShape shape() const { return frag_shape(type); }
  int64_t row_bytes() const { return k / block_elements(type) * block_bytes(type); }
  int64_t units() const { return frag_units(k); }
  int64_t packed_bytes() const { return frag_bytes(shape(), m, k); }
};

class FragLayout : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    device_ = open_shuffled_device(kLayoutSeed);
    stream_ = device_->create_stream().value();
    RecordProperty("seed", std::to_string(kLayoutSeed));
  }

  template <class Args>
  void run(const std::string& header, const std::string& entry, Dim3 grid, uint32_t threads, uint32_t shared,
           const Args& args) {
    const auto kernel = device_->kernel({header, entry, sizeof(Args)});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    KernelLaunch launch{*kernel, grid, {threads, 1, 1}, shared, false, std::vector<std::byte>(sizeof(Args))};
    std::memcpy(launch.args.data(), &args, sizeof(Args));
    const Status ran = stream_->run(launch);
    ASSERT_TRUE(ran.ok()) << entry << ": " << ran.error().message;
    ASSERT_TRUE(stream_->synchronize().ok());
  }
  std::string text(const std::string& kernel) const {
    return kernel + "<DType::" + std::string(dtype_name(GetParam())) + ">";
  }
  template <class T>
  Memory on_device(const std::vector<T>& values) {
    Memory memory = device_->allocate(static_cast<int64_t>(values.size() * sizeof(T))).value();
    EXPECT_TRUE(device_->upload(memory.ptr(), values.data(), memory.bytes()).ok());
    return memory;
  }
  template <class T>
  std::vector<T> on_host(const Memory& memory) {
    std::vector<T> values(static_cast<size_t>(memory.bytes()) / sizeof(T));
    EXPECT_TRUE(device_->download(values.data(), memory.ptr(), memory.bytes()).ok());
    return values;
  }

  void repack(const std::string& kernel, uint32_t blocks, const Matrix& w, const Memory& src, const Memory& dst) {
    RepackArgs args{};
    args.src = reinterpret_cast<const uint8_t*>(src.ptr());
    args.dst = reinterpret_cast<uint8_t*>(dst.ptr());
    args.row_bytes = w.row_bytes();
    args.m = static_cast<int32_t>(w.m);
    args.units = static_cast<int32_t>(w.units());
    args.count = frag_strips(w.m) * w.units();
    run("frag/repack.h", text(kernel), {blocks, 1, 1}, kRepackThreads, static_cast<uint32_t>(w.shape().unit_bytes()),
        args);
  }
  Memory pack(const Matrix& w) {
    const Memory raw = on_device(w.raw);
    Memory packed = device_->allocate(w.packed_bytes()).value();
    repack("pack_frag", 2, w, raw, packed);
    return packed;
  }
  std::vector<uint8_t> unpack(const Matrix& w, const Memory& packed) {
    const Memory raw = device_->allocate(static_cast<int64_t>(w.raw.size())).value();
    repack("unpack_frag", 3, w, packed, raw);
    return on_host<uint8_t>(raw);
  }
  std::vector<float> decode_raw(const Matrix& w) {
    const Memory raw = on_device(w.raw), dst = device_->allocate(w.m * w.k * 4).value();
    const int elements = slice_shape(w.type).elements();
    DequantizeArgs args{};
    args.weights = reinterpret_cast<const uint8_t*>(raw.ptr());
    args.dst = reinterpret_cast<uint8_t*>(dst.ptr());
    args.row_stride = w.row_bytes();
    args.m = args.rows = w.m;
    args.a2 = 1;
    args.k = static_cast<int32_t>(w.k);
    run("convert/convert.h", "dequantize<DType::" + std::string(dtype_name(w.type)) + ", DType::f32>",
        {static_cast<uint32_t>((w.k / elements + 255) / 256), static_cast<uint32_t>(w.m), 1}, 256,
        static_cast<uint32_t>(256 * elements * 4), args);
    return on_host<float>(dst);
  }
  std::vector<float> decode_frag(const Matrix& w, const Memory& packed) {
    const Memory dst = device_->allocate(w.m * w.k * 4).value();
    DequantizeFragArgs args{};
    args.weights = reinterpret_cast<const uint8_t*>(packed.ptr());
    args.dst = reinterpret_cast<uint8_t*>(dst.ptr());
    args.a2 = 1;
    args.m = static_cast<int32_t>(w.m);
    args.k = static_cast<int32_t>(w.k);
    args.units = static_cast<int32_t>(w.units());
    args.count = frag_strips(w.m) * w.units();
    run("frag/repack.h", "dequantize_frag<DType::" + std::string(dtype_name(w.type)) + ", DType::f32>", {2, 1, 1},
        kRepackThreads, dequantize_frag_shared_bytes(w.type, 4), args);
    return on_host<float>(dst);
  }

  static Matrix random_bytes(int64_t m, int64_t k, uint64_t seed) {
    Matrix w{GetParam(), m, k, {}};
    w.raw.resize(static_cast<size_t>(m * w.row_bytes()));
    std::mt19937_64 random(seed);
    std::generate(w.raw.begin(), w.raw.end(), [&] { return static_cast<uint8_t>(random()); });
    return w;
  }
  static Matrix random_weights(int64_t m, int64_t k, uint64_t seed) {
    Matrix w = random_bytes(m, k, seed);
    std::span<std::byte> bytes(reinterpret_cast<std::byte*>(w.raw.data()), w.raw.size());
    const double stddev = 1 / std::sqrt(static_cast<double>(k));
    EXPECT_TRUE(fill_random({.type = w.type, .stddev = stddev, .seed = seed}, bytes).ok());
    return w;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace cudabk::test
