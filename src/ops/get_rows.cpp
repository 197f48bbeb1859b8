#include "ops/get_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/slices.h"
#include "ops/cases.h"
#include "ops/row_moves.h"

namespace cudabk {
namespace {

constexpr std::string_view kName = "get_rows";

bool is_table_type(DType type) { return is_float(type) || type == DType::i32 || has_device_format(type); }

std::vector<std::string> table_types() {
  std::vector<std::string> names;
  for (const DTypeTraits& row : kDTypes) {
    if (is_table_type(row.type)) {
      names.emplace_back(row.name);
    }
  }
  return names;
}

class GetRowsOp final : public OpDef {
 public:
  std::string_view name() const override { return kName; }
  std::string_view summary() const override { return "rows of a table by index, decoded to f32"; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    const Support table = check_move_side(*y.src[0]);
    return table ? check_move_side(y) : table;
  }

  // A row of the table for every index, but no more than the table has.
  Cost cost(const Tensor& y) const override {
    const Tensor& table = *y.src[0];
    const double rows = std::min(static_cast<double>(row_count(y)), static_cast<double>(row_count(table)));
    const double read = rows * static_cast<double>(row_bytes(table.type, table.ne[0]));
    return {read + compulsory_bytes(*y.src[1]) + compulsory_bytes(y), 0, table.usage == Usage::kWeights ? read : 0};
  }

  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override {
    std::vector<Launch> launches;
    if (is_empty(y)) {
      return launches;
    }
    RowMove move;
    move.src = y.src[0];
    move.dst = &y;
    move.index = y.src[1];
    move.map = RowMap::kGather32;
    move.ne = y.ne;
    move.args.src_strides = byte_strides(*y.src[0]);
    move.args.dst_strides = byte_strides(y);
    CUDABK_ASSIGN(Launch launch, lower_row_move(move, kName, ctx));
    launches.push_back(std::move(launch));
    return launches;
  }

  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;
  // Every format decodes exactly.
  double tolerance(const Tensor&) const override { return 0; }
};

std::span<const Axis> GetRowsOp::axes() const {
  static const std::vector<Axis> axes{
      {"type", "type of the table", {"f32", "f16", "q8_0", "q4_0", "q4_K", "q6_K"}, {"f32", "q4_K"}, table_types()},
      {"cols", "elements of a row", {"4096"}, {"1024"}, {}},
      {"rows", "rows of the table", {"8192"}, {"64"}, {}},
      {"take", "indices", {"512", "8192"}, {"16"}, {}},
      {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
      {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
      {"layout", "memory layout of the table", {"dense"}, {"dense"}, layout_words()},
      {"layout-index", "memory layout of the indices", {"dense"}, {"dense"}, layout_words()},
  };
  return axes;
}

Result<Tensor*> GetRowsOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const DType type, parse_dtype(get_or(params, "type", "f32")));
  CUDABK_ASSIGN(const Shape ne, shape_of(params));
  CUDABK_ASSIGN(const int64_t take, get_int_or(params, "take", 1));
  CUDABK_ASSIGN(Tensor * table,
                make_operand(graph, "table", type, ne, get_or(params, "layout", "dense"), Usage::kWeights));
  CUDABK_ASSIGN(Tensor * index, make_operand(graph, "index", DType::i32, {take, ne[2], ne[3], 1},
                                             get_or(params, "layout-index", "dense")));
  if (ne[1] == 0 && element_count(*index) > 0) {
    return invalid(
        fmt::format("get_rows: {} indices into a table without rows ({})", element_count(*index), describe(*table)));
  }
  index->root().index_limit = ne[1];
  return get_rows(graph, table, index);
}

std::vector<CaseParams> GetRowsOp::test_cases() const {
  std::vector<CaseParams> cases;
  for (const std::string& type : table_types()) {
    const DType dtype = parse_dtype(type).value();
    const int block = block_elements(dtype);
    for (const std::string_view shape : {
             "rows=5 take=4",
             "rows=5 take=4 dim2=7",
             "rows=5 take=2 layout-index=half",
             "rows=5 take=4 dim2=7 layout-index=half",
             "rows=3 take=11 dim2=2 dim3=3",  // every row several times
             "rows=6 take=5 dim2=3 dim3=2 layout=permuted-0213",
             "rows=6 take=5 dim2=3 dim3=2 layout=permuted-0321 layout-index=permuted-1023",
             "rows=9 take=3 dim2=2 layout=half layout-index=window",
             "rows=9 take=5 layout=window layout-index=offset",
             "rows=1 take=3 layout=slice",
             "rows=5 take=0",
         }) {
      cases.push_back(make_case(fmt::format("type={} cols={} {}", type, 256, shape)));
    }
    for (const int blocks : {1, 3, 5, 37}) {
      cases.push_back(
          make_case(fmt::format("type={} cols={} rows=7 take=9 dim2=2 layout=offset", type, blocks * block)));
    }
  }
  for (const std::string_view text : {
           "cols=1 rows=8 take=2",
           "cols=33 rows=8 take=11 dim2=3",
           "type=f16 cols=31 rows=8 take=5 layout=offset",
           "type=bf16 cols=70001 rows=3 take=4",
           "cols=76800 rows=5 take=4 dim3=2",
           "type=q4_0 cols=76800 rows=5 take=4 dim3=2",
           "cols=32 rows=5 take=4 dim2=700 dim3=100",
           "type=q4_0 cols=32 rows=5 take=4 dim2=700 dim3=100",
           "type=q8_0 cols=256 rows=800 take=7000 dim2=2",
           "cols=4096 rows=9 take=300",
           "type=q4_K cols=16384 rows=9 take=300",
           "cols=0 rows=4 take=2",
       }) {
    cases.push_back(make_case(text));
  }
  return cases;
}

}  // namespace

Result<Tensor*> get_rows(Graph& graph, Tensor* table, Tensor* index) {
  if (!is_table_type(table->type)) {
    return invalid(fmt::format("get_rows: rows of {} cannot be taken; valid types: {}", describe(*table),
                               fmt::join(table_types(), ", ")));
  }
  if (index->type != DType::i32) {
    return invalid(fmt::format("get_rows: the indices are {}, only i32 is valid", describe(*index)));
  }
  if (index->ne[1] != table->ne[2] || index->ne[2] != table->ne[3] || index->ne[3] != 1) {
    return invalid(fmt::format("get_rows: the indices {} do not fit the table {}: [r,{},{}] is valid", describe(*index),
                               describe(*table), table->ne[2], table->ne[3]));
  }
  const Shape ne{table->ne[0], index->ne[0], table->ne[2], table->ne[3]};
  return graph.node(kName, {}, table->type == DType::i32 ? DType::i32 : DType::f32, ne, {table, index});
}

const OpDef& get_rows_op() {
  static const GetRowsOp op;
  return op;
}

}  // namespace cudabk
