#include "graph/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/parallel.h"
#include "graph/half.h"
#include "graph/random_blocks.h"

namespace cudabk {
namespace {

constexpr int kQuantiles = 1 << 16;  // distinct values of a plain type: 16 random bits choose one

// The standard normal distribution's quantiles at the centres of equal steps of probability.
std::vector<double> make_normal_quantiles() {
  std::vector<double> table(kQuantiles);
  double x = 0;
  for (int i = kQuantiles / 2; i < kQuantiles; ++i) {
    const double p = (i + 0.5) / kQuantiles;
    for (int step = 0; step < 6; ++step) {  // Newton from the left of a concave function: no overshoot
      const double cdf = 0.5 * std::erfc(-x / std::numbers::sqrt2);
      const double density = std::exp(-0.5 * x * x) * 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
      x += (p - cdf) / density;
    }
    table[static_cast<size_t>(i)] = x;
    table[static_cast<size_t>(kQuantiles - 1 - i)] = -x;
  }
  return table;
}

std::vector<double> value_table(const RandomFill& fill) {
  static const std::vector<double> kNormal = make_normal_quantiles();
  std::vector<double> table(kQuantiles);
  for (size_t i = 0; i < table.size(); ++i) {
    if (fill.distribution.kind == Distribution::Kind::kNormal) {
      table[i] = kNormal[i] * fill.stddev;
    } else {
      const double p = (static_cast<double>(i) + 0.5) / kQuantiles;
      table[i] = fill.distribution.low + (fill.distribution.high - fill.distribution.low) * p;
    }
  }
  return table;
}

template <class T, class Convert>
Status fill_plain(const RandomFill& fill, std::span<std::byte> out, Convert convert) {
  std::vector<T> table;
  table.reserve(kQuantiles);
  for (const double value : value_table(fill)) {
    table.push_back(convert(value));
  }
  constexpr int64_t kPiece = 1 << 18;  // elements that pay for a thread
  return in_parallel(static_cast<int64_t>(out.size() / sizeof(T)), kPiece, fill.threads,
                     [&](int64_t begin, int64_t end) -> Status {
                       uint64_t word = 0;
                       int64_t word_index = -1;
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t element = fill.first_block + i;
                         if (element / 4 != word_index) {
                           word_index = element / 4;
                           word = random_word(fill.seed, static_cast<uint64_t>(word_index));
                         }
                         const T value = table[(word >> (16 * (element % 4))) & 0xFFFF];
                         std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
                       }
                       return success();
                     });
}

// `value` as a finite nonzero float within the bounds of a type.
float bounded(double value, float smallest, float largest) {
  const double magnitude = std::clamp<double>(std::abs(value), smallest, largest);
  return static_cast<float>(std::copysign(magnitude, value));
}
uint16_t as_f16(double value) { return f32_to_f16(bounded(value, 0x1p-24f, 65504.0f)); }
uint16_t as_bf16(double value) { return f32_to_bf16(bounded(value, 0x1p-126f, 0x1.FEp127f)); }
float as_f32(double value) {
  return bounded(value, std::numeric_limits<float>::min(), std::numeric_limits<float>::max());
}
template <class T>
T as_integer(double value) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHigh = std::is_same_v<T, int64_t> ? 0x1p62 : static_cast<double>(std::numeric_limits<T>::max());
  return static_cast<T>(std::llround(std::clamp(value, kLow, kHigh)));
}

Status fill_blocks(const RandomFill& fill, std::span<std::byte> out) {
  const BlockFiller filler(fill.type, fill.stddev, fill.seed);
  const int64_t bytes = block_bytes(fill.type);
  constexpr int64_t kPieceBytes = 1 << 20;
  const auto work = [&](int64_t begin, int64_t end) -> Status {
    filler.fill(fill.first_block + begin, end - begin, reinterpret_cast<uint8_t*>(out.data()) + begin * bytes);
    return success();
  };
  return in_parallel(static_cast<int64_t>(out.size()) / bytes, kPieceBytes / bytes, fill.threads, work);
}

}  // namespace

Result<Distribution> parse_distribution(std::string_view text) {
  Distribution d;
  if (text == "normal") {
    return d;
  }
  constexpr std::string_view kUniform = "uniform:";
  if (text.starts_with(kUniform)) {
    d.kind = Distribution::Kind::kUniform;
    const char* end = text.data() + text.size();
    const auto low = std::from_chars(text.data() + kUniform.size(), end, d.low);
    if (low.ec == std::errc() && low.ptr != end && *low.ptr == ',') {
      const auto high = std::from_chars(low.ptr + 1, end, d.high);
      if (high.ec == std::errc() && high.ptr == end && std::isfinite(d.low) && std::isfinite(d.high) &&
          d.low < d.high) {
        return d;
      }
    }
  }
  return invalid(fmt::format("unknown distribution '{}'; valid: normal, uniform:A,B with A < B", text));
}

std::string distribution_text(const Distribution& d) {
  return d.kind == Distribution::Kind::kNormal ? "normal" : fmt::format("uniform:{},{}", d.low, d.high);
}

Status fill_random(const RandomFill& fill, std::span<std::byte> out) {
  if (!std::isfinite(fill.stddev) || fill.stddev <= 0) {
    return invalid(fmt::format("random {}: a standard deviation of {}", dtype_name(fill.type), fill.stddev));
  }
  if (out.size() % static_cast<size_t>(block_bytes(fill.type)) != 0) {
    return invalid(fmt::format("random {}: {} bytes are not whole blocks of {}", dtype_name(fill.type), out.size(),
                               block_bytes(fill.type)));
  }
  if (is_quantized(fill.type)) {
    return fill_blocks(fill, out);
  }
  switch (fill.type) {
    case DType::f16:
      return fill_plain<uint16_t>(fill, out, as_f16);
    case DType::bf16:
      return fill_plain<uint16_t>(fill, out, as_bf16);
    case DType::f64:
      return fill_plain<double>(fill, out, [](double v) { return v; });
    case DType::i8:
      return fill_plain<int8_t>(fill, out, as_integer<int8_t>);
    case DType::i16:
      return fill_plain<int16_t>(fill, out, as_integer<int16_t>);
    case DType::i32:
      return fill_plain<int32_t>(fill, out, as_integer<int32_t>);
    case DType::i64:
      return fill_plain<int64_t>(fill, out, as_integer<int64_t>);
    default:
      return fill_plain<float>(fill, out, as_f32);
  }
}

Status fill_indices(const IndexFill& fill, std::span<std::byte> out) {
  const int64_t largest = fill.type == DType::i64 ? INT64_MAX : INT32_MAX;
  if ((fill.type != DType::i32 && fill.type != DType::i64) || fill.limit < 1 || fill.limit - 1 > largest) {
    return invalid(fmt::format("indices of type {} below {}", dtype_name(fill.type), fill.limit));
  }
  const auto size = static_cast<size_t>(block_bytes(fill.type));
  const auto limit = static_cast<uint64_t>(fill.limit);
  uint64_t value = 0, step = 1;
  for (size_t i = 0; i < out.size() / size; ++i) {
    const uint64_t row = i / static_cast<uint64_t>(std::max<int64_t>(fill.row_length, 1));
    if (i % static_cast<uint64_t>(std::max<int64_t>(fill.row_length, 1)) == 0) {
      value = random_word(fill.seed, 2 * row) % limit;
      step = 1 + random_word(fill.seed, 2 * row + 1) % limit;
      while (std::gcd(step, limit) != 1) {  // a step without a common divisor visits every value before it repeats
        ++step;
      }
      step %= limit;
    }
    std::memcpy(out.data() + i * size, &value, size);  // little-endian
    value = value >= limit - step ? value - (limit - step) : value + step;
  }
  return success();
}

uint64_t tensor_seed(uint64_t seed, int index) { return random_word(seed, ~static_cast<uint64_t>(index)); }

}  // namespace cudabk
