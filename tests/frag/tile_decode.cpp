#include "frag/tile_decode.h"

#include <iterator>
#include <utility>

#include "frag/tile_values.h"

namespace cudabk::test {
namespace {

// The fragments of one lane of a tile, at[row][element]: 16 x 64 values.
template <DType T>
void decode_lane(const uint8_t* unit, int tile, const std::vector<float>& factors, float* at, int64_t row_values) {
  constexpr FragShape S = frag_shape(T);
  const int g = lane() / 4, t = lane() % 4;
  TileRows rows;
  rows.product[0] = tile_row<S, 0>(factors[static_cast<size_t>(g)]);
  rows.product[1] = tile_row<S, 1>(factors[static_cast<size_t>(g + 8)]);
  for (int h = 0; h < 2; ++h) {
    rows.unit[h] = unit_row<S>(load_row_words<S, FragMemory::kShared>(unit, g + 8 * h), rows.product[h]);
  }
  FragTile<S> words;
  words.template load<FragMemory::kShared>(unit, tile);
  uint32_t a[4][4];
  value_fragments<T>(words, rows, a);
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) {
      const int h = i % 2, p = i / 2;
      const float unit_value = frag_row_factor(S, h) / kSubnormalUnit * inverse_power(rows.product[h].factor);
      float* to = at + (g + 8 * h) * row_values + 16 * j + 4 * t + 2 * p;
      to[0] = host::low_f16(a[j][i]) * unit_value;
      to[1] = host::high_f16(a[j][i]) * unit_value;
    }
  }
}

template <DType T>
std::vector<float> decode(const std::vector<uint8_t>& strip, const std::vector<float>& factors, int64_t units) {
  std::vector<float> values(static_cast<size_t>(kFragRows * kFragDepth * units));
  std::vector<std::byte> shared(static_cast<size_t>(frag_lookup_bytes(T)) + 1);
  host::Block block;
  block.shared = shared.data();
  host::Thread thread;
  thread.block = &block;
  host::Thread* const before = std::exchange(host::current, &thread);
  if constexpr (frag_shape(T).has_book()) {
    copy_frag_book<T>(0, 1);
  }
  for (thread.lane = 0; thread.lane < kWarpSize; ++thread.lane) {
    if constexpr (has_frag_lookup(T)) {
      for (int byte = 0; byte < 256; ++byte) {
        shared_memory<uint32_t>()[byte * kWarpSize + lane()] = tile_lookup_entry<T>(static_cast<uint32_t>(byte));
      }
    }
    for (int64_t tile = 0; tile < 4 * units; ++tile) {
      decode_lane<T>(strip.data() + tile / 4 * frag_shape(T).unit_bytes(), static_cast<int>(tile % 4), factors,
                     values.data() + 64 * tile, kFragDepth * units);
    }
  }
  host::current = before;
  return values;
}

template <int Type = 0>
std::vector<float> decode_type(DType type, const std::vector<uint8_t>& strip, const std::vector<float>& factors,
                               int64_t units) {
  if constexpr (Type < static_cast<int>(std::size(kDTypes))) {
    constexpr DType kType = kDTypes[Type].type;
    if constexpr (frag_shape(kType).exists()) {
      if (type == kType) {
        return decode<kType>(strip, factors, units);
      }
    }
    return decode_type<Type + 1>(type, strip, factors, units);
  } else {
    return {};
  }
}

}  // namespace

std::vector<float> tile_values(DType type, const std::vector<uint8_t>& strip, const std::vector<float>& factors,
                               int64_t units) {
  return decode_type(type, strip, factors, units);
}

}  // namespace cudabk::test
