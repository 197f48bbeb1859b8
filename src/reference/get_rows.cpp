// get_rows: row i1 of slice (i2, i3) is row index[i1, i2, i3] of the same slice of the table.
#include "reference/rows.h"

namespace cudabk {

Result<std::vector<double>> reference_get_rows(const Tensor& y, const Region& region, const Values& values) {
  const Tensor& table = *y.src[0];
  const Tensor& index = *y.src[1];
  const ColumnRange range = ColumnRange::of(region);
  std::vector<double> row(range.size()), entry(1);
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    CUDABK_TRY(values.read_row(index, i2, i3, 0, i1, entry));
    CUDABK_TRY(values.read_row(table, static_cast<int64_t>(entry[0]), i2, i3, range.begin, row));
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = row[static_cast<size_t>(region.index[0][j] - range.begin)];
    }
    return success();
  });
}

}  // namespace cudabk
