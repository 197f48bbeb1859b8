#include <numeric>

#include "reference/reference.h"

namespace cudabk {

int64_t Region::count() const {
  int64_t n = 1;
  for (const auto& list : index) {
    n *= static_cast<int64_t>(list.size());
  }
  return n;
}

Region Region::whole(const Tensor& t) {
  Region region;
  for (int d = 0; d < 4; ++d) {
    region.index[d].resize(static_cast<size_t>(t.ne[d]));
    std::iota(region.index[d].begin(), region.index[d].end(), int64_t{0});
  }
  return region;
}

}  // namespace cudabk
