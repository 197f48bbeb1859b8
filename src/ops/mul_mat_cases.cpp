#include "ops/mul_mat_cases.h"

#include <fmt/format.h>

#include <cstdlib>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "formats/frag_shape.h"
#include "formats/slices.h"
#include "ops/mul_mat.h"

namespace cudabk {
namespace {

std::vector<std::string> weight_types() {
  std::vector<std::string> names = {"f32", "f16", "bf16"};
  for (const DTypeTraits& row : kDTypes) {
    if (has_device_format(row.type)) {
      names.emplace_back(row.name);
    }
  }
  return names;
}
const std::vector<std::string> kTypes = weight_types();

std::string value_or(const CaseParams& params, std::string_view name, std::string_view fallback) {
  std::string value = params.get(name);
  return value.empty() ? std::string(fallback) : value;
}

Result<int64_t> int_or(const CaseParams& params, std::string_view name, int64_t fallback) {
  return params.get(name).empty() ? Result<int64_t>(fallback) : params.get_int(name);
}

// A tensor of shape `ne` that is a view of a dense leaf with its dimensions in another order and `gap` unused elements
// after every row. "0213": dims 1 and 2 are swapped in memory.
Result<Tensor*> make_operand(Graph& graph, std::string name, DType type, Shape ne, Usage usage, std::string_view order,
                             int64_t gap) {
  std::array<int, 4> axes{};
  for (int i = 0; i < 4; ++i) {
    axes[i] = order[i] - '0';
  }
  Shape memory{};
  for (int i = 0; i < 4; ++i) {
    memory[i] = ne[axes[i]];  // permute moves memory dim i to axes[i]
  }
  Shape wide = memory;
  if (__builtin_add_overflow(wide[0], gap, &wide[0])) {
    return invalid(fmt::format("{}: a row of {} elements and a gap of {} is too long", name, memory[0], gap));
  }
  CUDABK_ASSIGN(Tensor * t, graph.leaf(std::move(name), type, wide, usage));
  if (gap > 0) {
    CUDABK_ASSIGN(t, graph.view(t, memory, t->nb, 0));
  }
  if (order != "0123") {
    CUDABK_ASSIGN(t, graph.permute(t, axes));
  }
  return t;
}

CaseParams make_case(std::string_view type, int64_t m, int64_t n, int64_t k) {
  CaseParams c;
  c.set("type", std::string(type));
  c.set("m", fmt::format("{}", m));
  c.set("n", fmt::format("{}", n));
  c.set("k", fmt::format("{}", k));
  return c;
}

CaseParams with(CaseParams c, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  for (const auto& [name, value] : values) {
    c.set(name, std::string(value));
  }
  return c;
}

int64_t block_of(std::string_view type) { return block_elements(parse_dtype(type).value()); }

// Shapes: odd and single rows, both sides of the vector and tile widths, one block of k and odd multiples.
void add_shapes(std::string_view type, std::vector<CaseParams>& cases) {
  const int64_t block = block_of(type);
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 33}) {
    cases.push_back(make_case(type, 16, n, 256));
  }
  for (const int64_t m : {1, 3, 17, 33, 65}) {
    cases.push_back(make_case(type, m, 1, 2 * block < 64 ? 64 : 2 * block));
    cases.push_back(make_case(type, m, m == 33 ? 9 : 5, 512));
  }
  cases.push_back(make_case(type, 33, 65, 256));
  cases.push_back(make_case(type, 130, 129, 256));
  cases.push_back(make_case(type, 7, 1, block));
  cases.push_back(make_case(type, 16, 16, block == 1 ? 4 : block));
  cases.push_back(make_case(type, 5, 0, 256));
  cases.push_back(make_case(type, 5, 3, 0));  // sums of nothing
  cases.push_back(make_case(type, 20, 3, 1024));
  if (block <= 32) {
    for (const int64_t k : {32, 64, 96, 192, 320, 1056}) {  // odd multiples of the block and of 64
      cases.push_back(make_case(type, 33, 16, k));
      cases.push_back(make_case(type, 5, 1, k));
    }
  } else {
    cases.push_back(make_case(type, 9, 2, 3 * block));
  }
  if (block == 1) {
    for (const int64_t k : {1, 7, 67, 193}) {  // no vector loads
      cases.push_back(make_case(type, 19, 1, k));
      cases.push_back(make_case(type, 19, 18, k));
    }
  }
}

// Batches, broadcast, permuted and gapped operands.
void add_layouts(std::string_view type, std::vector<CaseParams>& cases) {
  for (const int64_t n : {1, 8, 16}) {
    const CaseParams base = with(make_case(type, 16, n, 256), {{"b2", "2"}, {"b3", "3"}});
    cases.push_back(base);
    for (const std::string_view order : {"0213", "0132", "0321"}) {
      cases.push_back(with(base, {{"dims", order}}));
    }
    cases.push_back(with(base, {{"r2", "2"}}));
    cases.push_back(with(base, {{"r3", "2"}}));
    cases.push_back(with(base, {{"r2", "2"}, {"r3", "2"}, {"dims", "0213"}}));
    cases.push_back(with(make_case(type, 24, n, 256), {{"gap", "256"}}));
    cases.push_back(with(make_case(type, 24, n, 256), {{"gap", "256"}, {"b2", "2"}, {"r2", "4"}, {"dims", "0213"}}));
  }
}

void add_precision(std::string_view type, std::vector<CaseParams>& cases) {
  for (const int64_t n : {1, 8, 32, 64}) {
    cases.push_back(with(make_case(type, 16, n, 512), {{"prec", "f32"}}));
    cases.push_back(with(make_case(type, 16, n, 512), {{"scale", "100000"}}));
    cases.push_back(with(make_case(type, 16, n, 512), {{"scale", "100000"}, {"prec", "f32"}}));
  }
}

// Packed weights: every column count with its own kernel, strips and units that are not full, batches, and views: some
// are read in place, the others unpacked.
void add_frag(std::string_view type, std::vector<CaseParams>& cases) {
  const int64_t block = block_of(type);
  const auto add = [&](int64_t m, int64_t n, int64_t k,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> values = {}) {
    cases.push_back(with(with(make_case(type, m, n, k), {{"layout", "frag"}}), values));
  };
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 17, 65}) {
    add(33, n, 256);
    add(n % 2 == 0 ? 16 : 17, n, block == 32 ? 1056 : 768);
  }
  for (const int64_t n : {1, 4, 8}) {
    add(17, n, block);
    add(40, n, block == 32 ? 96 : 2560);
    add(16, n, 256, {{"b2", "2"}, {"b3", "3"}});
    add(17, n, 256, {{"b2", "2"}, {"b3", "2"}, {"r2", "2"}, {"r3", "2"}});
    add(16, n, 256, {{"b2", "2"}, {"b3", "2"}, {"r2", "2"}, {"dims", "0321"}});
    add(16, n, 256, {{"b2", "2"}, {"dims", "0213"}});
    add(20, n, 256, {{"rows", "52"}});
    add(20, n, 256, {{"rows", "52"}, {"b2", "2"}, {"r2", "2"}});
    add(20, n, 256, {{"rows", "51"}});
    add(24, n, 256, {{"gap", "256"}});
  }
  add(7, 1, 256);
  add(33, 9, 512, {{"scale", "100000"}});
  add(33, 3, 512, {{"prec", "f32"}});
}

}  // namespace

std::span<const Axis> mul_mat_axes() {
  static const std::vector<Axis> kAxes = {
      {"type", "weight type", {"q4_K"}, {"q4_K"}, kTypes},
      {"m", "rows of the weights", {"4096"}, {"256"}, {}},
      {"n",
       "columns: tokens in the batch",
       {"1", "2", "4", "8", "16", "32", "64", "128", "512", "2048"},
       {"1", "8", "64"},
       {}},
      {"k", "length of a weight row", {"4096", "14336"}, {"1024"}, {}},
      {"act", "activation type", {"f32"}, {"f32"}, {"f32", "f16"}},
      {"b2", "weight slices in dim 2", {"1"}, {"1"}, {}},
      {"b3", "weight slices in dim 3", {"1"}, {"1"}, {}},
      {"r2", "activation slices per weight slice in dim 2", {"1"}, {"1"}, {}},
      {"r3", "activation slices per weight slice in dim 3", {"1"}, {"1"}, {}},
      {"dims", "order of the operands' dims in memory", {"0123"}, {"0123"}, {"0123", "0213", "0132", "0321"}},
      {"gap", "unused elements after every row", {"0"}, {"0"}, {}},
      {"prec", "precision asked for", {"default"}, {"default"}, {"default", "f32"}},
      {"layout", "layout of the weights: the profile's, or this one", {"auto"}, {"auto"}, {"auto", "raw", "frag"}},
      {"rows", "the weights are the last m of this many rows of a tensor; 0: all", {"0"}, {"0"}, {}},
      {"scale", "factor on the activations", {"1"}, {"1"}, {"1", "100000", "0.0000001"}},
  };
  return kAxes;
}

Result<Tensor*> build_mul_mat_case(Graph& graph, const CaseParams& params) {
  CUDABK_ASSIGN(const DType type, parse_dtype(value_or(params, "type", "q4_K")));
  CUDABK_ASSIGN(const DType act, parse_dtype(value_or(params, "act", "f32")));
  CUDABK_ASSIGN(const int64_t m, params.get_int("m"));
  CUDABK_ASSIGN(const int64_t n, params.get_int("n"));
  CUDABK_ASSIGN(const int64_t k, params.get_int("k"));
  CUDABK_ASSIGN(const int64_t b2, int_or(params, "b2", 1));
  CUDABK_ASSIGN(const int64_t b3, int_or(params, "b3", 1));
  CUDABK_ASSIGN(const int64_t r2, int_or(params, "r2", 1));
  CUDABK_ASSIGN(const int64_t r3, int_or(params, "r3", 1));
  CUDABK_ASSIGN(const int64_t gap, int_or(params, "gap", 0));
  for (const int64_t extent : {m, n, k, b2, b3, r2, r3}) {
    if (extent < 0 || extent > INT32_MAX) {
      return invalid(fmt::format("mul_mat: extent {} is outside 0..{}", extent, INT32_MAX));
    }
  }
  if (b2 == 0 || b3 == 0 || r2 == 0 || r3 == 0) {
    return invalid("mul_mat: b2, b3, r2 and r3 are at least 1");
  }
  const std::string order = value_or(params, "dims", "0123");
  CUDABK_ASSIGN(const int64_t rows, int_or(params, "rows", 0));
  if (rows != 0 && rows < m) {
    return invalid(fmt::format("mul_mat: {} rows do not hold {}", rows, m));
  }
  CUDABK_ASSIGN(Tensor * w,
                make_operand(graph, "weights", type, {k, std::max(m, rows), b2, b3}, Usage::kWeights, order, gap));
  const std::string layout = value_or(params, "layout", "auto");
  w->root().layout_wish =
      layout == "auto" ? LayoutWish::kAuto : (layout == "frag" ? LayoutWish::kFrag : LayoutWish::kRaw);
  if (rows > m) {
    CUDABK_ASSIGN(w, graph.view(w, {k, m, b2, b3}, w->nb, (rows - m) * w->nb[1]));
  }
  CUDABK_ASSIGN(Tensor * x, make_operand(graph, "x", act, {k, n, b2 * r2, b3 * r3}, Usage::kCompute, order, gap));
  x->root().init_scale = std::strtof(value_or(params, "scale", "1").c_str(), nullptr);  // one of the axis' values
  const auto precision = value_or(params, "prec", "default") == "f32" ? Precision::kF32 : Precision::kDefault;
  return mul_mat(graph, w, x, {precision});
}

std::vector<CaseParams> mul_mat_test_cases() {
  std::vector<CaseParams> cases;
  for (const std::string& type : kTypes) {
    add_shapes(type, cases);
    add_layouts(type, cases);
    add_precision(type, cases);
    if (frag_shape(parse_dtype(type).value()).exists()) {
      add_frag(type, cases);
    }
  }
  for (const std::string_view type : {"f16", "bf16"}) {  // several parts of k, strips and columns that are not full
    for (const int64_t n : {2, 7, 16, 30, 64}) {
      cases.push_back(make_case(type, 83, n, n == 7 || n == 64 ? 2048 : 2104));
    }
    cases.push_back(with(make_case(type, 40, 5, 1056), {{"scale", "0.0000001"}}));
    cases.push_back(with(make_case(type, 40, 70, 1056), {{"scale", "0.0000001"}}));
    cases.push_back(with(make_case(type, 40, 33, 1056), {{"scale", "100000"}, {"gap", "8"}}));
  }
  for (const std::string_view type : {"f16", "bf16", "q4_0", "q4_K", "q6_K", "iq2_xs"}) {  // batches of many columns
    CaseParams base = make_case(type, 75, 33, 768);
    if (block_of(type) != 1) {
      base.set("layout", "frag");
    }
    cases.push_back(with(base, {{"b2", "2"}, {"b3", "2"}}));
    cases.push_back(with(base, {{"b2", "2"}, {"r2", "2"}, {"r3", "2"}}));
    cases.push_back(with(base, {{"rows", "107"}}));
  }
  for (const int64_t n : {1, 4, 8, 45}) {
    cases.push_back(with(make_case("f16", 64, n, 128), {{"act", "f16"}}));
    cases.push_back(with(make_case("f16", 64, n, 128), {{"act", "f16"}, {"b2", "8"}, {"r2", "4"}, {"dims", "0213"}}));
    cases.push_back(with(make_case("f16", 64, n, 128), {{"b2", "8"}, {"r2", "4"}, {"gap", "128"}}));
    cases.push_back(with(make_case("f16", 83, n, 67), {{"b2", "4"}, {"r2", "4"}, {"dims", "0213"}}));
  }
  return cases;
}

}  // namespace cudabk
