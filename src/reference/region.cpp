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

Result<std::vector<double>> gather_region(int64_t row_length, const Region& region, const RowReader& read) {
  std::vector<double> result;
  result.reserve(static_cast<size_t>(region.count()));
  std::vector<double> row(static_cast<size_t>(row_length));
  for (const int64_t i3 : region.index[3]) {
    for (const int64_t i2 : region.index[2]) {
      for (const int64_t i1 : region.index[1]) {
        CUDABK_TRY(read(i1, i2, i3, row));
        for (const int64_t i0 : region.index[0]) {
          result.push_back(row[static_cast<size_t>(i0)]);
        }
      }
    }
  }
  return result;
}

}  // namespace cudabk
