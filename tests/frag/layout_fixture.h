// A matrix in the `frag` layout on the emulated device, threads in random order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "convert/args.h"
#include "formats/frag_place.h"
#include "formats/slices.h"
#include "frag/args.h"
#include "frag/tile_args.h"
#include "graph/init.h"
#include "kernel_test.h"

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

class FragLayout : public KernelTest<DType> {
 protected:
  explicit FragLayout(std::string_view device = "host") : KernelTest(kLayoutSeed, device) {}

  std::string text(const std::string& kernel) const {
    return kernel + "<DType::" + std::string(dtype_name(GetParam())) + ">";
  }

  void repack(const std::string& kernel, uint32_t blocks, const Matrix& w, const Memory& src, const Memory& dst) {
    RepackArgs args{};
    args.src = at<const uint8_t>(src);
    args.dst = at<uint8_t>(dst);
    args.row_bytes = w.row_bytes();
    args.m = static_cast<int32_t>(w.m);
    args.units = static_cast<int32_t>(w.units());
    args.count = frag_strips(w.m) * w.units();
    run("frag/repack.h", text(kernel), {blocks, 1, 1}, kRepackThreads, w.shape().unit_bytes(), args);
  }
  Memory pack(const Matrix& w) {
    const Memory raw = on_device(w.raw);
    Memory packed = device_->allocate(w.packed_bytes()).value();
    repack("pack_frag", 2, w, raw, packed);
    return packed;
  }
  // f32, one a row.
  Memory row_factors(const Matrix& w, const Memory& packed) {
    Memory factors = device_->allocate(frag_strips(w.m) * kFragRows * 4).value();
    FragFactorsArgs args{};
    args.weights = at<const uint8_t>(packed);
    args.factors = at<float>(factors);
    args.units = static_cast<int32_t>(w.units());
    args.strips = frag_strips(w.m);
    run("frag/factors.h", text("frag_factors"), {1, 1, 1}, kFactorWarps * 32, kFactorWarps * kFragRows * 4, args);
    return factors;
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
    args.weights = at<const uint8_t>(raw);
    args.dst = at<uint8_t>(dst);
    args.row_stride = w.row_bytes();
    args.m = args.rows = w.m;
    args.a2 = 1;
    args.k = static_cast<int32_t>(w.k);
    run("convert/convert.h", "dequantize<DType::" + std::string(dtype_name(w.type)) + ", DType::f32>",
        {static_cast<uint32_t>((w.k / elements + 255) / 256), static_cast<uint32_t>(w.m), 1}, 256, 256 * elements * 4,
        args);
    return on_host<float>(dst);
  }
  std::vector<float> decode_frag(const Matrix& w, const Memory& packed) {
    const Memory dst = device_->allocate(w.m * w.k * 4).value();
    DequantizeFragArgs args{};
    args.weights = at<const uint8_t>(packed);
    args.dst = at<uint8_t>(dst);
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
  static std::vector<float> random_columns(int64_t n, int64_t k, float stddev) {
    std::mt19937_64 random(kLayoutSeed);
    std::normal_distribution<float> normal(0, stddev);
    std::vector<float> x(static_cast<size_t>(n * k));
    std::generate(x.begin(), x.end(), [&] { return normal(random); });
    return x;
  }
  // Normalised mean square error of `got`, the product of w and `n` columns x.
  double nmse(const Matrix& w, const std::vector<float>& x, int64_t n, const std::vector<float>& got) {
    const std::vector<float> values = decode_raw(w);
    double error = 0, norm = 0;
    for (int64_t col = 0; col < n; ++col) {
      for (int64_t row = 0; row < w.m; ++row) {
        double want = 0;
        for (int64_t i = 0; i < w.k; ++i) {
          want +=
              static_cast<double>(values[static_cast<size_t>(row * w.k + i)]) * x[static_cast<size_t>(col * w.k + i)];
        }
        error += std::pow(got[static_cast<size_t>(col * w.m + row)] - want, 2);
        norm += want * want;
      }
    }
    return error / norm;
  }
};

}  // namespace cudabk::test
