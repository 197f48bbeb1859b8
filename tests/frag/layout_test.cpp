// The kernels of the `frag` layout on the emulated device: to and fro bit for bit, decoding bit for bit, and products
// of whole fragments against plain loops.
#include <bit>
#include <cctype>

#include "formats/gold.h"
#include "frag/layout_fixture.h"
#include "frag/tile_args.h"
#include "frag/tile_decode.h"

namespace cudabk::test {
namespace {

void expect_same(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want, int64_t row_bytes) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(int{got[i]}, int{want[i]}) << "row " << static_cast<int64_t>(i) / row_bytes << " byte "
                                         << static_cast<int64_t>(i) % row_bytes << " seed " << kLayoutSeed;
  }
}

// A NaN's bits are free, a zero's sign too.
void expect_same(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
    } else if (want[i] == 0) {
      ASSERT_EQ(got[i], 0) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
          << "element " << i << ": " << got[i] << " instead of " << want[i] << " seed " << kLayoutSeed;
    }
  }
}

TEST_P(FragLayout, AnyBytesComeBack) {
  const int64_t block = block_elements(GetParam());
  for (const auto& [m, k] : std::vector<std::pair<int64_t, int64_t>>{
           {16, 256}, {1, block}, {17, 3 * block}, {33, block == 32 ? 1056 : 768}, {31, 512}}) {
    const Matrix w = random_bytes(m, k, kLayoutSeed + static_cast<uint64_t>(m));
    expect_same(unpack(w, pack(w)), w.raw, w.row_bytes());
  }
}

TEST_P(FragLayout, GoldenBlocksComeBack) {
  std::string name(dtype_name(GetParam()));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const Gold gold("r4c1024/" + name);
  ASSERT_TRUE(gold.valid());
  Matrix w{GetParam(), gold.rows(), gold.cols(), gold.section<uint8_t>("q")};
  expect_same(unpack(w, pack(w)), w.raw, w.row_bytes());
  expect_same(decode_frag(w, pack(w)), decode_raw(w));
}

TEST_P(FragLayout, ValuesAreThoseOfTheRawBlocks) {
  const int64_t block = block_elements(GetParam());
  for (const auto& [m, k] : std::vector<std::pair<int64_t, int64_t>>{{16, 256}, {19, block}, {33, 5 * block}}) {
    const Matrix w = random_weights(m, k, kLayoutSeed);
    expect_same(decode_frag(w, pack(w)), decode_raw(w));
  }
}

// Padding: zero codes, zero scales.
TEST_P(FragLayout, PaddingDecodesToNothing) {
  const Matrix w = random_weights(17, block_elements(GetParam()), kLayoutSeed);
  const Memory packed = pack(w);
  Matrix padded = w;
  padded.m = 32;
  padded.k = 256;
  const std::vector<float> values = decode_frag(padded, packed);
  for (int64_t row = 0; row < padded.m; ++row) {
    for (int64_t k = 0; k < padded.k; ++k) {
      if (row >= w.m || k >= w.k) {
        ASSERT_EQ(values[static_cast<size_t>(row * padded.k + k)], 0) << row << " " << k;
      }
    }
  }
}

// What products by warp groups multiply.
TEST_P(FragLayout, TileValuesAreTheWeights) {
  const Matrix w = random_weights(16, 768, kLayoutSeed);
  const Memory packed = pack(w), factors = row_factors(w, packed);
  const std::vector<float> want = decode_raw(w),
                           got = tile_values(w.type, on_host<uint8_t>(packed), on_host<float>(factors), w.units());
  double error = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(double{got[i]} - want[i], 2);
    norm += std::pow(double{want[i]}, 2);
  }
  EXPECT_LT(error, 5e-7 * norm);
}

// ---- products ----

class FragProduct : public FragLayout {
 protected:
  // NMSE of the kernel's product of w and `n` columns.
  double error_of(const Matrix& w, int64_t n, const std::string& header, const std::string& entry, int rows_of_block,
                  int columns_of_block, int warps, int shared, float scale = 1) {
    const std::vector<float> x = random_columns(n, w.k, scale);
    const Memory x_memory = on_device(x), packed = pack(w);
    const FragShape s = w.shape();
    const int tile = columns_of_block < 8 ? columns_of_block : 8;
    const Memory units =
        device_->allocate((n + tile - 1) / tile * w.units() * column_unit_bytes(s.group, tile)).value();
    EXPECT_TRUE(device_->fill(units.ptr(), 0xff, units.bytes()).ok());
    PackColumnsArgs pack_args{};
    pack_args.x = at<const uint8_t>(x_memory);
    pack_args.units = at<uint8_t>(units);
    for (int i = 0; i < 4; ++i) {
      pack_args.zero[i] = frag_start_zero(s, i / 2, i % 2);
    }
    pack_args.nb1 = w.k * 4;
    pack_args.n = static_cast<int32_t>(n);
    pack_args.b2 = pack_args.batch = 1;
    pack_args.k = static_cast<int32_t>(w.k);
    run("frag/columns.h", "pack_units<" + std::to_string(s.group) + ", " + std::to_string(tile) + ", true>",
        {static_cast<uint32_t>((w.units() + 3) / 4), static_cast<uint32_t>(n), 1}, 128, 0, pack_args);
    const Memory dst = device_->allocate(w.m * n * 4).value();
    FragArgs args{};
    args.weights = at<const uint8_t>(packed);
    const bool own = entry.ends_with(", true>");  // packs activations itself
    args.x = at<const uint8_t>(own ? x_memory : units);
    args.x_nb1 = w.k * 4;
    args.dst = at<float>(dst);
    args.batch = {1, 1, 1, 1};
    args.m = static_cast<int32_t>(w.m);
    args.n = static_cast<int32_t>(n);
    args.units = static_cast<int32_t>(w.units());
    run(header, entry,
        {static_cast<uint32_t>((w.m + rows_of_block - 1) / rows_of_block),
         static_cast<uint32_t>((n + columns_of_block - 1) / columns_of_block), 1},
        32 * warps, shared, args);
    return nmse(w, x, n, on_host<float>(dst));
  }
  bool compiled_for_two_strips() const {
    return GetParam() == DType::q4_K || GetParam() == DType::q6_K || GetParam() == DType::iq4_xs;
  }
  std::string kernel(const std::string& name, const std::string& rest) const {
    return name + "<DType::" + std::string(dtype_name(GetParam())) + ", " + rest + ">";
  }
};

constexpr double kBound = 1e-6;
constexpr int kEmulatedCc = 80;

TEST_P(FragProduct, OneTwoAndFourColumns) {
  for (const int cols : {1, 2, 4}) {
    const bool ring = cols == 4;
    const int warps = ring ? 8 : 6;
    const std::string header = ring ? "frag/narrow_ring.h" : "frag/vector.h";
    const std::string entry =
        ring ? kernel("frag_ring", "4, 1, 8, 2") : kernel("frag_vector", std::to_string(cols) + ", 6, 1, 2, false");
    const int shared =
        ring ? frag_ring_shared_bytes(GetParam(), 4, 1, 8, 2) : frag_vector_shared_bytes(GetParam(), 6, 1, kEmulatedCc);
    const Matrix w = random_weights(16, 256, kLayoutSeed);
    EXPECT_LT(error_of(w, cols, header, entry, 16, cols, warps, shared), kBound) << cols << " columns, one unit";
    const Matrix large = random_weights(33, 256 * 35, kLayoutSeed);  // each warp has several units, rings go around
    EXPECT_LT(error_of(large, cols, header, entry, 16, cols, warps, shared), kBound) << cols << ", 35 units";
  }
}

// Each warp packs what it multiplies.
TEST_P(FragProduct, ColumnsPackedByTheProduct) {
  for (const int cols : {1, 2}) {
    const std::string entry = kernel("frag_vector", std::to_string(cols) + ", 6, 1, 2, true");
    const int shared = frag_vector_shared_bytes(GetParam(), 6, 1, kEmulatedCc);
    const Matrix w = random_weights(33, 256 * 20, kLayoutSeed);
    for (const float scale : {1.0F, 1e-30F, 1e30F}) {
      EXPECT_LT(error_of(w, cols, "frag/vector.h", entry, 16, cols, 6, shared, scale), kBound)
          << cols << " columns, activations of " << scale;
    }
  }
}

TEST_P(FragProduct, EightColumnsAndMore) {
  const std::string entry = kernel("frag_wide", "1, 1, 8, 2");
  const int shared = frag_wide_shared_bytes(GetParam(), 1, 1, 8, 2);
  for (const int64_t n : {8, 3, 17}) {
    const double one = error_of(random_weights(16, 256, kLayoutSeed), n, "frag/wide.h", entry, 16, 8, 8, shared);
    EXPECT_LT(one, kBound) << n << " columns, one unit";
  }
  const double many = error_of(random_weights(33, 256 * 19, kLayoutSeed), 9, "frag/wide.h", entry, 16, 8, 8, shared);
  EXPECT_LT(many, kBound) << "19 units";
}

TEST_P(FragProduct, ColumnsOfAnySize) {
  for (const float scale : {1e-30F, 1e6F, 1e30F}) {
    const double error =
        error_of(random_weights(16, 512, kLayoutSeed), 8, "frag/wide.h", kernel("frag_wide", "1, 1, 8, 2"), 16, 8, 8,
                 frag_wide_shared_bytes(GetParam(), 1, 1, 8, 2), scale);
    EXPECT_LT(error, kBound) << "activations of " << scale;
  }
}

TEST_P(FragProduct, StraightIntoRegisters) {
  const bool both = compiled_for_two_strips() || GetParam() == DType::q2_K || GetParam() == DType::q4_1;
  for (const int warps : both ? std::vector<int>{4, 6} : std::vector<int>{4}) {
    for (const int64_t n : {8, 3, 17}) {
      const double error = error_of(random_weights(33, 256 * 19, kLayoutSeed), n, "frag/direct.h",
                                    kernel("frag_direct", std::to_string(warps)), 16, 8, warps,
                                    frag_wide_rings_place(GetParam(), 1, 1, warps));
      EXPECT_LT(error, kBound) << n << " columns, " << warps << " warps";
    }
  }
}

// Two strips per block; the last block of an odd number of strips has only one.
TEST_P(FragProduct, TwoStripsPerBlock) {
  if (!compiled_for_two_strips()) {
    GTEST_SKIP() << "compiled for the emulated device for one type of each kind";
  }
  const Matrix w = random_weights(33, 256 * 35, kLayoutSeed);
  EXPECT_LT(error_of(w, 1, "frag/vector.h", kernel("frag_vector", "1, 6, 2, 1, false"), 32, 1, 12,
                     frag_vector_shared_bytes(GetParam(), 6, 2, kEmulatedCc)),
            kBound);
  for (const int cols : {1, 2, 4}) {
    const double error =
        error_of(w, cols, "frag/narrow_ring.h", kernel("frag_ring", std::to_string(cols) + ", 2, 8, 2"), 32, cols, 8,
                 frag_ring_shared_bytes(GetParam(), cols, 2, 8, 2));
    EXPECT_LT(error, kBound) << cols << " columns";
  }
}

// Two strips and two column tiles per block; the last block of an odd number of tiles has only one.
TEST_P(FragProduct, SixteenColumnsPerBlock) {
  if (!compiled_for_two_strips()) {
    GTEST_SKIP() << "compiled for the emulated device for one type of each kind";
  }
  for (const int64_t n : {16, 9, 24}) {
    const double error =
        error_of(random_weights(33, 256 * 19, kLayoutSeed), n, "frag/wide.h", kernel("frag_wide", "2, 2, 8, 1"), 32, 16,
                 8, frag_wide_shared_bytes(GetParam(), 2, 2, 8, 1));
    EXPECT_LT(error, kBound) << n << " columns";
  }
}

const auto kNameOf = [](const auto& info) { return std::string(dtype_traits(info.param).name); };
INSTANTIATE_TEST_SUITE_P(Every, FragLayout, testing::ValuesIn(frag_types()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Every, FragProduct, testing::ValuesIn(frag_types()), kNameOf);

TEST(FragTypes, AreAllThatHaveProducts) { EXPECT_EQ(frag_types().size(), 20U); }

}  // namespace
}  // namespace cudabk::test
