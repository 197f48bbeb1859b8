// Decoders, encoders and products of every type against the golden files.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>

#include "gold.h"
#include "reference/reference.h"

namespace cudabk::test {
namespace {

std::vector<std::string> golden_types() {
  std::vector<std::string> names{"f32", "f16", "bf16"};
  for (const DTypeTraits& row : kDTypes) {
    if (is_quantized(row.type)) {
      std::string name = row.name;
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      names.push_back(name);
    }
  }
  return names;
}

class FormatTest : public testing::TestWithParam<std::string> {
 protected:
  FormatTest() : gold_("r4c1024/" + GetParam()), source_("r4c1024/source") {}
  void SetUp() override {
    const auto type = parse_dtype(GetParam());
    ASSERT_TRUE(type.ok());
    ASSERT_TRUE(gold_.valid() && source_.valid());
    type_ = *type;
  }
  std::vector<float> decode(const std::vector<uint8_t>& bytes) const {
    const int64_t elements = static_cast<int64_t>(bytes.size()) / block_bytes(type_) * block_elements(type_);
    std::vector<float> out(static_cast<size_t>(elements));
    decode_row(type_, reinterpret_cast<const std::byte*>(bytes.data()), elements, out.data());
    return out;
  }
  std::vector<uint8_t> packed() const { return gold_.section<uint8_t>("q"); }
  static void expect_equal(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_FALSE(got.empty());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << "element " << i;  // +0 equals -0
    }
  }

  Gold gold_;
  Gold source_;
  DType type_ = DType::f32;
};

TEST_P(FormatTest, DecodesTheMatrix) { expect_equal(decode(packed()), gold_.section<float>("deq")); }

TEST_P(FormatTest, DecodesRandomBlocks) {
  expect_equal(decode(gold_.section<uint8_t>("fq")), gold_.section<float>("fdeq"));
}

// Bytes are compared exactly; where a block's source is all zero the sign of the scale (and the codes of iq4_nl) is
// free.
TEST_P(FormatTest, EncodesByTheRule) {
  if (!gold_.encoded_by_rule()) {
    EXPECT_FALSE(has_encoder(type_));
    std::byte unused{};
    const auto refused = encode_row(type_, nullptr, 0, &unused);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
    return;
  }
  ASSERT_TRUE(has_encoder(type_));
  const auto src = source_.section<float>("src");
  const auto want = packed();
  std::vector<uint8_t> got(want.size());
  ASSERT_TRUE(
      encode_row(type_, src.data(), static_cast<int64_t>(src.size()), reinterpret_cast<std::byte*>(got.data())).ok());
  const auto bytes = static_cast<size_t>(block_bytes(type_));
  const auto elements = static_cast<size_t>(block_elements(type_));
  int compared = 0;
  for (size_t block = 0; block * bytes < want.size(); ++block) {
    const auto first = src.begin() + static_cast<std::ptrdiff_t>(block * elements);
    const bool zero = std::all_of(first, first + static_cast<std::ptrdiff_t>(elements), [](float x) { return x == 0; });
    if (zero && is_quantized(type_)) {
      const std::vector<uint8_t> a(got.begin() + static_cast<std::ptrdiff_t>(block * bytes),
                                   got.begin() + static_cast<std::ptrdiff_t>((block + 1) * bytes));
      for (const float x : decode(a)) {
        ASSERT_EQ(x, 0) << "block " << block;
      }
      continue;
    }
    ++compared;
    for (size_t i = block * bytes; i < (block + 1) * bytes; ++i) {
      ASSERT_EQ(got[i], want[i]) << "block " << block << " byte " << i - block * bytes;
    }
  }
  EXPECT_GT(compared, 0);
}

class MapValues final : public Values {
 public:
  std::map<const Tensor*, std::span<const std::byte>> memory;
  std::span<const std::byte> bytes(const Tensor& root) const override {
    const auto found = memory.find(&root);
    return found == memory.end() ? std::span<const std::byte>{} : found->second;
  }
};

TEST_P(FormatTest, ProductsAgree) {
  const int64_t m = gold_.rows();
  const int64_t k = gold_.cols();
  const int64_t n = gold_.vectors();
  Graph graph;
  Tensor* a = *graph.leaf("a", type_, {k, m, 1, 1}, Usage::kWeights);
  Tensor* b = *graph.leaf("b", DType::f32, {k, n, 1, 1});
  Tensor* y = *graph.node("mul_mat", {}, DType::f32, {m, n, 1, 1}, {a, b});
  const auto q = packed();
  const auto x = source_.section<float>("x");
  MapValues values;
  values.memory[a] = std::as_bytes(std::span(q));
  values.memory[b] = std::as_bytes(std::span(x));
  const auto got = evaluate_reference(*y, Region::whole(*y), values);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const auto want = gold_.section<double>("y");
  const auto bound = gold_.section<double>("yabs");
  ASSERT_EQ(got->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(std::abs((*got)[i] - want[i]), 1e-13 * bound[i]) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FormatTest, testing::ValuesIn(golden_types()),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace cudabk::test
