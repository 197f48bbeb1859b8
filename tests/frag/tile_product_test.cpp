// frag_tile, launched on the emulated device: its rings, barriers, decoding and sums against plain loops.
#include <fmt/format.h>

#include "frag/layout_fixture.h"
#include "frag/tile_args.h"

namespace cudabk::test {
namespace {

constexpr int kCols = 32, kGroups = 2, kStages = 2;
constexpr double kTileBound = 1e-6;

struct TileShape {
  int64_t m, n, k;
  int parts;
};

class FragTileProducts : public FragLayout {
 protected:
  Memory row_factors(const Matrix& w, const Memory& packed) {
    Memory factors = device_->allocate(frag_strips(w.m) * kFragRows * 4).value();
    FragFactorsArgs args{};
    args.weights = reinterpret_cast<const uint8_t*>(packed.ptr());
    args.factors = reinterpret_cast<float*>(factors.ptr());
    args.units = static_cast<int32_t>(w.units());
    args.strips = frag_strips(w.m);
    run("frag/factors.h", text("frag_factors"), {1, 1, 1}, kFactorWarps * 32, kFactorWarps * kFragRows * 4, args);
    return factors;
  }
  void pack_tiles(const Memory& x, const Memory& tiles, const Memory& scale, const TileShape& s) {
    PackTilesArgs args{};
    args.x = reinterpret_cast<const uint8_t*>(x.ptr());
    args.tiles = reinterpret_cast<uint8_t*>(tiles.ptr());
    args.scale = reinterpret_cast<float*>(scale.ptr());
    args.nb1 = s.k * 4;
    args.n = static_cast<int32_t>(s.n);
    args.b2 = args.batch = 1;
    args.k = static_cast<int32_t>(s.k);
    args.parts = s.parts;
    run("frag/tile_columns.h", "pack_tiles<true, 1, true>",
        {static_cast<uint32_t>(s.n), static_cast<uint32_t>(s.parts), 1}, kPackTilesThreads, 64, args);
  }
  // [n][m]: the sums of all parts.
  std::vector<float> product(const Matrix& w, const std::vector<float>& x, const TileShape& s) {
    const Memory packed = pack(w), factors = row_factors(w, packed), columns = on_device(x);
    const Memory tiles = device_->allocate((s.n + 7) / 8 * w.units() * 4 * kTileColumnsBytes).value(),
                 scale = device_->allocate(s.parts * s.n * 4).value(),
                 sums = device_->allocate(s.parts * s.m * s.n * 4).value();
    EXPECT_TRUE(device_->fill(tiles.ptr(), 0xff, tiles.bytes()).ok());  // columns that do not exist: NaN
    pack_tiles(columns, tiles, scale, s);
    FragTileArgs args{};
    args.weights = reinterpret_cast<const uint8_t*>(packed.ptr());
    args.row_factor = reinterpret_cast<const uint8_t*>(factors.ptr());
    args.x = reinterpret_cast<const uint8_t*>(tiles.ptr());
    args.x_scale = reinterpret_cast<const float*>(scale.ptr());
    args.dst = reinterpret_cast<float*>(sums.ptr());
    args.batch = {1, 1, 1, 1};
    args.m = static_cast<int32_t>(s.m);
    args.n = static_cast<int32_t>(s.n);
    args.units = static_cast<int32_t>(w.units());
    args.parts = s.parts;
    const auto blocks = [](int64_t count, int of) { return static_cast<uint32_t>((count + of - 1) / of); };
    run("frag/tile.h", fmt::format("frag_tile<DType::{}, {}, {}, {}, 1>", dtype_name(w.type), kCols, kGroups, kStages),
        {blocks(s.m, kGroups * 64), blocks(s.n, kCols), static_cast<uint32_t>(s.parts)}, kGroups * 128 + 32,
        static_cast<uint32_t>(frag_tile_shared_bytes(w.type, kCols, kGroups, kStages)), args);
    std::vector<float> all = on_host<float>(sums);
    const auto total = static_cast<size_t>(s.m * s.n);
    for (size_t i = total; i < all.size(); ++i) {
      all[i % total] += all[i];
    }
    all.resize(total);
    return all;
  }
};

// Rows and columns that are no whole blocks, one unit and more than the ring has stages, parts of k, activations of any
// size.
TEST_P(FragTileProducts, AreThoseOfPlainLoops) {
  for (const auto& [shape, size] :
       {std::pair{TileShape{16, 8, 256, 1}, 1.0F}, std::pair{TileShape{150, 40, 256 * 7, 2}, 1.0F},
        std::pair{TileShape{33, 17, 512, 1}, 1e6F}}) {
    const Matrix w = random_weights(shape.m, shape.k, kLayoutSeed);
    std::mt19937_64 random(kLayoutSeed);
    std::normal_distribution<float> normal(0, size);
    std::vector<float> x(static_cast<size_t>(shape.n * shape.k));
    std::generate(x.begin(), x.end(), [&] { return normal(random); });
    const std::vector<float> values = decode_raw(w), got = product(w, x, shape);
    double error = 0, norm = 0;
    for (int64_t col = 0; col < shape.n; ++col) {
      for (int64_t row = 0; row < shape.m; ++row) {
        double want = 0;
        for (int64_t k = 0; k < shape.k; ++k) {
          want += static_cast<double>(values[static_cast<size_t>(row * shape.k + k)]) *
                  x[static_cast<size_t>(col * shape.k + k)];
        }
        error += std::pow(got[static_cast<size_t>(col * shape.m + row)] - want, 2);
        norm += want * want;
      }
    }
    EXPECT_LT(error / norm, kTileBound) << shape.m << " x " << shape.k << ", " << shape.n << " columns";
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FragTileProducts, testing::ValuesIn(frag_types()),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace cudabk::test
