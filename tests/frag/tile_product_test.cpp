// frag_tile, launched on the emulated device: its rings, barriers, decoding and sums against plain loops.
#include <fmt/format.h>

#include "frag/layout_fixture.h"

namespace cudabk::test {
namespace {

constexpr int kCols = 32, kGroups = 2, kStages = 4;
constexpr double kTileBound = 1e-6;

struct TileShape {
  int64_t m, n, k;
  int parts;
  int batch = 1;  // of columns, by the same weights; each block takes all of them
};

class FragTileProducts : public FragLayout {
 protected:
  FragTileProducts() : FragLayout("host@sm_90a") {}

  void pack_tiles(const Memory& x, const Memory& tiles, const Memory& scale, const TileShape& s) {
    PackTilesArgs args{};
    args.x = at<const uint8_t>(x);
    args.tiles = at<uint8_t>(tiles);
    args.scale = at<float>(scale);
    args.nb1 = s.k * 4;
    args.nb2 = args.nb1 * s.n;
    args.n = static_cast<int32_t>(s.n);
    args.b2 = args.batch = s.batch;
    args.k = static_cast<int32_t>(s.k);
    args.parts = s.parts;
    run("frag/tile_columns.h", "pack_tiles<true, 1, true>",
        {static_cast<uint32_t>(s.n), static_cast<uint32_t>(s.parts), 1}, kPackTilesThreads, 64, args);
  }
  // [batch][n][m]: the sums of all parts.
  std::vector<float> product(const Matrix& w, const std::vector<float>& x, const TileShape& s) {
    const Memory packed = pack(w), factors = row_factors(w, packed), columns = on_device(x);
    const Memory tiles = device_->allocate(s.batch * ((s.n + 7) / 8) * w.units() * 4 * kTileColumnsBytes).value(),
                 scale = device_->allocate(s.batch * s.parts * s.n * 4).value(),
                 sums = device_->allocate(s.batch * s.parts * s.m * s.n * 4).value();
    EXPECT_TRUE(device_->fill(tiles.ptr(), 0xff, tiles.bytes()).ok());  // columns that do not exist: NaN
    pack_tiles(columns, tiles, scale, s);
    FragTileArgs args{};
    args.weights = at<const uint8_t>(packed);
    args.row_factor = at<const uint8_t>(factors);
    args.x = at<const uint8_t>(tiles);
    args.x_scale = at<const float>(scale);
    args.dst = at<float>(sums);
    args.batch = {s.batch, s.batch, s.batch, 1};
    args.m = static_cast<int32_t>(s.m);
    args.n = static_cast<int32_t>(s.n);
    args.units = static_cast<int32_t>(w.units());
    args.parts = s.parts;
    const auto blocks = [](int64_t count, int of) { return static_cast<uint32_t>((count + of - 1) / of); };
    run("frag/tile.h", fmt::format("frag_tile<DType::{}, {}, {}, {}, 1>", dtype_name(w.type), kCols, kGroups, kStages),
        {blocks(s.m, kGroups * 64), blocks(s.n, kCols), static_cast<uint32_t>(s.parts)}, kGroups * 128 + 32,
        frag_tile_shared_bytes(w.type, kCols, kGroups, kStages), args);
    return added(on_host<float>(sums), s.parts);
  }
};

// Rows and columns that are no whole blocks, one unit and more than the ring has stages, parts of k, batches,
// activations of any size.
TEST_P(FragTileProducts, AreThoseOfPlainLoops) {
  for (const auto& [shape, size] :
       {std::pair{TileShape{16, 8, 256, 1}, 1.0F}, std::pair{TileShape{150, 40, 256 * 11, 2}, 1.0F},
        std::pair{TileShape{33, 17, 512, 1, 3}, 1e6F}}) {
    const Matrix w = random_weights(shape.m, shape.k, kLayoutSeed);
    const std::vector<float> x = random_columns(shape.batch * shape.n, shape.k, size);
    EXPECT_LT(nmse(w, x, shape.batch * shape.n, product(w, x, shape)), kTileBound)
        << shape.m << " x " << shape.k << ", " << shape.n << " columns";
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FragTileProducts, testing::ValuesIn(frag_types()),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace cudabk::test
