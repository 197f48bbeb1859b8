#include "ops/set_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/cases.h"
#include "ops/row_moves.h"

namespace cudabk {
namespace {

constexpr std::string_view kName = "set_rows";

bool is_table_type(DType type) { return is_float(type) || has_device_encoder(type); }

std::vector<std::string> table_types() {
  std::vector<std::string> names;
  for (const DTypeTraits& row : kDTypes) {
    if (is_table_type(row.type)) {
      names.emplace_back(row.name);
    }
  }
  return names;
}

const Tensor& rows_of(const Tensor& y) { return *y.src[0]; }
const Tensor& index_of(const Tensor& y) { return *y.src[1]; }

class SetRowsOp final : public OpDef {
 public:
  std::string_view name() const override { return kName; }
  std::string_view summary() const override { return "rows written into a table by index, converted to its type"; }

  Support supports(const Tensor& y, const DeviceInfo&) const override {
    const Support rows = check_move_side(rows_of(y));
    return rows ? check_move_side(y) : rows;
  }

  // The table is only touched where it is written.
  Cost cost(const Tensor& y) const override {
    const double written = static_cast<double>(row_count(rows_of(y))) * static_cast<double>(row_bytes(y.type, y.ne[0]));
    return {compulsory_bytes(rows_of(y)) + compulsory_bytes(index_of(y)) + written, 0, 0};
  }

  Result<std::vector<Launch>> lower(const Tensor& y, LowerContext& ctx) const override {
    std::vector<Launch> launches;
    const Tensor& rows = rows_of(y);
    if (is_empty(y) || is_empty(rows)) {
      return launches;
    }
    RowMove move;
    move.src = &rows;
    move.dst = &y;
    move.index = &index_of(y);
    move.map = move.index->type == DType::i64 ? RowMap::kScatter64 : RowMap::kScatter32;
    move.ne = rows.ne;
    move.args.src_strides = byte_strides(rows);
    move.args.dst_strides = byte_strides(y);
    CUDABK_ASSIGN(Launch launch, lower_row_move(move, kName, ctx));
    launches.push_back(std::move(launch));
    return launches;
  }

  std::span<const Axis> axes() const override;
  Result<Tensor*> build(Graph& graph, const CaseParams& params) const override;
  std::vector<CaseParams> test_cases() const override;
  double tolerance(const Tensor& y) const override { return encode_nmse(y.type); }
};

std::span<const Axis> SetRowsOp::axes() const {
  static const std::vector<Axis> axes{
      {"type", "type of the table", {"f16", "q8_0", "q4_0"}, {"f16", "q8_0"}, table_types()},
      {"cols", "elements of a row", {"1024"}, {"256"}, {}},
      {"rows", "rows of the table", {"4096"}, {"64"}, {}},
      {"put", "rows that are written", {"512", "4096"}, {"16"}, {}},
      {"dim2", "extent of dim 2", {"1"}, {"1"}, {}},
      {"dim3", "extent of dim 3", {"1"}, {"1"}, {}},
      {"repeat2", "how often the indices repeat along dim 2", {"1"}, {"1"}, {}},
      {"repeat3", "how often the indices repeat along dim 3", {"1"}, {"1"}, {}},
      {"index", "type of the indices", {"i64"}, {"i64"}, {"i64", "i32"}},
      {"type-src", "type of the values", {"f32"}, {"f32"}, {"f32", "f16"}},
      {"layout", "memory layout of the values", {"dense"}, {"dense"}, layout_words()},
      // Permuted indices could name a row twice.
      {"layout-index",
       "memory layout of the indices",
       {"dense"},
       {"dense"},
       {"dense", "half", "offset", "window", "slice"}},
      {"layout-table", "memory layout of the table", {"dense"}, {"dense"}, layout_words()},
  };
  return axes;
}

Result<Tensor*> SetRowsOp::build(Graph& graph, const CaseParams& params) const {
  CUDABK_ASSIGN(const DType type, parse_dtype(get_or(params, "type", "f16")));
  CUDABK_ASSIGN(const DType src_type, parse_dtype(get_or(params, "type-src", "f32")));
  CUDABK_ASSIGN(const DType index_type, parse_dtype(get_or(params, "index", "i64")));
  CUDABK_ASSIGN(const Shape ne, shape_of(params));
  CUDABK_ASSIGN(const int64_t put, get_int_or(params, "put", 1));
  CUDABK_ASSIGN(const int64_t repeat2, get_int_or(params, "repeat2", 1));
  CUDABK_ASSIGN(const int64_t repeat3, get_int_or(params, "repeat3", 1));
  if (repeat2 < 1 || repeat3 < 1 || ne[2] % repeat2 != 0 || ne[3] % repeat3 != 0) {
    return invalid(fmt::format("set_rows: repeat2 = {} and repeat3 = {} do not divide dim2 = {} and dim3 = {}", repeat2,
                               repeat3, ne[2], ne[3]));
  }
  if (put > ne[1]) {
    return invalid(fmt::format("set_rows: {} rows to put into a table of {}: some would be written twice", put, ne[1]));
  }
  CUDABK_ASSIGN(Tensor * rows,
                make_operand(graph, "rows", src_type, {ne[0], put, ne[2], ne[3]}, get_or(params, "layout", "dense")));
  CUDABK_ASSIGN(Tensor * index, make_operand(graph, "index", index_type, {put, ne[2] / repeat2, ne[3] / repeat3, 1},
                                             get_or(params, "layout-index", "dense")));
  index->root().index_limit = ne[1];
  CUDABK_ASSIGN(Tensor * table, make_operand(graph, "table", type, ne, get_or(params, "layout-table", "dense")));
  return set_rows(graph, table, rows, index);
}

std::vector<CaseParams> SetRowsOp::test_cases() const {
  std::vector<CaseParams> cases;
  const auto add = [&](const std::string& types, std::initializer_list<std::string_view> shapes) {
    for (const std::string_view shape : shapes) {
      cases.push_back(make_case(types + " " + std::string(shape)));
    }
  };
  for (const std::string& name : table_types()) {
    const std::string type = "type=" + name;
    add(type, {"cols=256 rows=5 put=1 dim3=3", "cols=256 rows=5 put=1 dim2=7 dim3=3",
               "cols=256 rows=11 put=7 dim2=2 dim3=7 repeat2=2 repeat3=7",
               "cols=96 rows=3 put=2 dim2=14 dim3=3 repeat2=2 repeat3=3 index=i32",
               "cols=256 rows=5 put=0 dim3=3 layout=half layout-index=half", "cols=32 rows=40 put=33 dim2=3",
               "cols=64 rows=13 put=6 dim2=2 layout=half layout-index=half",
               "cols=160 rows=9 put=5 dim2=2 dim3=3 layout=permuted-0213 layout-table=permuted-0213",
               "cols=128 rows=9 put=5 dim2=2 layout=offset layout-table=offset layout-index=offset",
               "cols=1056 rows=9 put=5 layout=window layout-table=window layout-index=window index=i32",
               "cols=2048 rows=30 put=30 dim2=2 layout-table=half", "cols=4128 rows=70 put=65 index=i32",
               "cols=32 rows=0 put=0", "cols=0 rows=4 put=2"});
  }
  for (const std::string type : {"type=f32", "type=f16", "type=bf16", "type=f16 type-src=f16"}) {
    add(type, {"cols=1 rows=8 put=2 dim3=3", "cols=1 rows=8 put=2 dim3=3 index=i32",
               "cols=31 rows=3 put=2 dim2=7 repeat2=7", "cols=33 rows=5 put=1 dim3=7",
               "cols=70001 rows=3 put=2 index=i32", "cols=24 rows=9 put=8 layout=offset layout-table=offset"});
  }
  add("type=q8_0", {"cols=32 rows=20 put=9 dim2=700 dim3=100 repeat2=700", "cols=256 rows=9000 put=7000"});
  return cases;
}

Status check_shapes(const Tensor& table, const Tensor& rows, const Tensor& index) {
  const bool slices = rows.ne[0] == table.ne[0] && rows.ne[2] == table.ne[2] && rows.ne[3] == table.ne[3];
  if (!slices) {
    return invalid(fmt::format("set_rows: the rows {} do not fit the table {}", describe(rows), describe(table)));
  }
  const auto divides = [](int64_t part, int64_t whole) { return part > 0 ? whole % part == 0 : whole == 0; };
  if (index.ne[0] != rows.ne[1] || !divides(index.ne[1], rows.ne[2]) || !divides(index.ne[2], rows.ne[3]) ||
      index.ne[3] != 1) {
    return invalid(
        fmt::format("set_rows: the indices {} do not fit the rows {}: [{},{},{}], or divisors of the last "
                    "two, is valid",
                    describe(index), describe(rows), rows.ne[1], rows.ne[2], rows.ne[3]));
  }
  return success();
}

}  // namespace

Result<Tensor*> set_rows(Graph& graph, Tensor* table, Tensor* rows, Tensor* index) {
  if (!is_table_type(table->type)) {
    return invalid(
        fmt::format("set_rows: the table is {}; valid types: {}", describe(*table), fmt::join(table_types(), ", ")));
  }
  if (rows->type != DType::f32 && !(rows->type == DType::f16 && table->type == DType::f16)) {
    return invalid(fmt::format("set_rows: the rows are {}; f32 is valid, for an f16 table also f16", describe(*rows)));
  }
  if (index->type != DType::i64 && index->type != DType::i32) {
    return invalid(fmt::format("set_rows: the indices are {}, only i64 and i32 are valid", describe(*index)));
  }
  CUDABK_TRY(check_shapes(*table, *rows, *index));
  return graph.node_into(kName, {}, table, {rows, index, table});
}

const OpDef& set_rows_op() {
  static const SetRowsOp op;
  return op;
}

}  // namespace cudabk
