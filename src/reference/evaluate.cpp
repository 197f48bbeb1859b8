// Evaluates a region of an op's result; sources without memory are computed the same way.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "reference/reference.h"

namespace cudabk {
namespace {
struct ReferenceRow {
  std::string_view op;
  ReferenceFn evaluate;
};
}  // namespace

#include "reference_ops.inc"

namespace {

// Values for one op's evaluation. An op reads its sources row by row, mostly the rows that its region names: the first
// of them that has to be computed brings all of them, so that a product decodes its weights once.
class RegionValues final : public Values {
 public:
  RegionValues(const Values& base, const Region& region) : base_(base), region_(region) {}

  std::span<const std::byte> bytes(const Tensor& root) const override { return base_.bytes(root); }

 protected:
  Result<std::span<const double>> computed_row(const Tensor& t, int64_t i1, int64_t i2, int64_t i3,
                                               std::vector<double>& storage) const override {
    Rows& rows = rows_[&t];
    if (!rows.filled) {
      rows.region = rows_of(t);
      CUDABK_ASSIGN(rows.values, evaluate_reference(t, rows.region, base_));
      const int64_t cols = t.ne[0];
      for (int64_t at = 0; at < static_cast<int64_t>(rows.values.size()); at += cols) {
        CUDABK_TRY(
            round_result(t.type, std::span(rows.values).subspan(static_cast<size_t>(at), static_cast<size_t>(cols))));
      }
      rows.filled = true;
    }
    const std::array<int64_t, 4> wanted{0, i1, i2, i3};
    size_t row = 0;
    for (int d = 3; d >= 1; --d) {
      const auto& list = rows.region.index[d];
      const auto found = std::lower_bound(list.begin(), list.end(), wanted[d]);
      if (found == list.end() || *found != wanted[d]) {
        return Values::computed_row(t, i1, i2, i3, storage);
      }
      row = row * list.size() + static_cast<size_t>(found - list.begin());
    }
    const auto cols = static_cast<size_t>(t.ne[0]);
    return std::span<const double>(rows.values).subspan(row * cols, cols);
  }

 private:
  struct Rows {
    bool filled = false;
    Region region;  // sorted lists
    std::vector<double> values;
  };

  // Whole rows of `t` at the region's positions, wrapped to its extents (broadcast operands).
  Region rows_of(const Tensor& t) const {
    Region rows;
    rows.index[0].resize(static_cast<size_t>(t.ne[0]));
    std::iota(rows.index[0].begin(), rows.index[0].end(), int64_t{0});
    for (int d = 1; d < 4; ++d) {
      auto& list = rows.index[d];
      for (const int64_t i : region_.index[d]) {
        list.push_back(i % t.ne[d]);
      }
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return rows;
  }

  const Values& base_;
  const Region& region_;
  mutable std::map<const Tensor*, Rows> rows_;
};

Status check_region(const Tensor& t, const Region& region) {
  for (int d = 0; d < 4; ++d) {
    for (const int64_t i : region.index[d]) {
      if (i < 0 || i >= t.ne[d]) {
        return internal_error(fmt::format("region: index {} of dimension {} in {}", i, d, describe(t)));
      }
    }
  }
  return success();
}

}  // namespace

Result<std::vector<double>> evaluate_reference(const Tensor& t, const Region& region, const Values& values) {
  CUDABK_TRY(check_region(t, region));
  if (region.count() == 0) {
    return std::vector<double>{};
  }
  const RegionValues cached(values, region);
  if (is_view_op(t)) {
    return gather_region(t.ne[0], region, [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> row) {
      return cached.read_row(t, i1, i2, i3, 0, row);
    });
  }
  const auto* row = std::find_if(std::begin(kReferenceOps), std::end(kReferenceOps),
                                 [&](const ReferenceRow& r) { return r.op == t.op; });
  if (row == std::end(kReferenceOps)) {
    return internal_error(fmt::format("{}: op '{}' is not in the op list", t.name, t.op));
  }
  auto result = row->evaluate(t, region, cached);
  if (!result.ok()) {
    return std::move(result).error().with_context(t.name);
  }
  if (static_cast<int64_t>(result->size()) != region.count()) {
    return internal_error(
        fmt::format("{}: the reference gave {} values for a region of {}", t.name, result->size(), region.count()));
  }
  return result;
}

}  // namespace cudabk
