// set_rows: row i1 of slice (i2, i3) of the values becomes row index[i1, i2 % B2, i3 % B3] of the same slice of the
// table; rows that no index names stay as they were.
#include <map>

#include "reference/rows.h"

namespace cudabk {
namespace {

// Row of the table -> row of the values, for the indices of one slice. Of a row named twice either may win.
Result<std::map<int64_t, int64_t>> sources_of(const Tensor& index, int64_t b2, int64_t b3, const Values& values) {
  std::vector<double> entries(static_cast<size_t>(index.ne[0]));
  CUDABK_TRY(values.read_row(index, b2, b3, 0, 0, entries));
  std::map<int64_t, int64_t> sources;
  for (size_t i = 0; i < entries.size(); ++i) {
    sources[static_cast<int64_t>(entries[i])] = static_cast<int64_t>(i);
  }
  return sources;
}

}  // namespace

Result<std::vector<double>> reference_set_rows(const Tensor& y, const Region& region, const Values& values) {
  const Tensor& rows = *y.src[0];
  const Tensor& index = *y.src[1];
  const Tensor& table = *y.src[2];
  std::map<std::pair<int64_t, int64_t>, std::map<int64_t, int64_t>> slices;
  std::vector<double> row(static_cast<size_t>(y.ne[0]));
  return for_each_region_row(region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> out) -> Status {
    const int64_t b2 = i2 % index.ne[1], b3 = i3 % index.ne[2];
    auto slice = slices.find({b2, b3});
    if (slice == slices.end()) {
      CUDABK_ASSIGN(auto sources, sources_of(index, b2, b3, values));
      slice = slices.emplace(std::pair(b2, b3), std::move(sources)).first;
    }
    const auto source = slice->second.find(i1);
    if (source == slice->second.end()) {
      CUDABK_TRY(values.read_row(table, i1, i2, i3, 0, row));
    } else {
      CUDABK_TRY(values.read_row(rows, source->second, i2, i3, 0, row));
      if (is_quantized(y.type)) {
        CUDABK_TRY(round_to_type(y.type, row));
      }
    }
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = row[static_cast<size_t>(region.index[0][j])];
    }
    return success();
  });
}

}  // namespace cudabk
