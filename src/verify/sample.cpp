#include "verify/sample.h"

#include <algorithm>
#include <random>
#include <set>

namespace cudabk {
namespace {

std::vector<int64_t> sample_indices(int64_t extent, int64_t random_count, bool tile_edges, std::mt19937_64& rng) {
  std::set<int64_t> chosen;
  const auto add = [&](int64_t i) {
    if (i >= 0 && i < extent) {
      chosen.insert(i);
    }
  };
  add(0);
  add(extent - 1);
  if (tile_edges) {
    add(1);
    add(extent - 2);
    for (const int64_t tile : {8, 16, 64, 128}) {
      const int64_t last = extent / tile;  // number of whole tiles
      const int64_t some = last > 0 ? 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(last)) : 0;
      for (const int64_t edge : {tile, some * tile, last * tile}) {
        add(edge - 1);
        add(edge);
      }
    }
  }
  const int64_t wanted = std::min(extent, static_cast<int64_t>(chosen.size()) + random_count);
  while (static_cast<int64_t>(chosen.size()) < wanted) {
    add(static_cast<int64_t>(rng() % static_cast<uint64_t>(extent)));
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace

Region sample_region(const Tensor& t, uint64_t seed, int64_t full_threshold) {
  if (element_count(t) <= full_threshold) {
    return Region::whole(t);
  }
  std::mt19937_64 rng(seed);
  Region region;
  region.index[0] = sample_indices(t.ne[0], 64, true, rng);
  region.index[1] = sample_indices(t.ne[1], 16, true, rng);
  region.index[2] = sample_indices(t.ne[2], 2, false, rng);
  region.index[3] = sample_indices(t.ne[3], 2, false, rng);
  return region;
}

}  // namespace cudabk
