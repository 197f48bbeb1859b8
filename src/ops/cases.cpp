#include "ops/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cudabk {
namespace {

constexpr std::string_view kPermuted = "permuted-";
constexpr int64_t kWindowColumns = 32;  // where a window starts

Result<Tensor*> view_of_leaf(Graph& graph, std::string name, DType type, const Shape& parent, Usage usage, Shape ne,
                             const Shape& start) {
  CUDABK_ASSIGN(Tensor * leaf, graph.leaf(std::move(name), type, parent, usage));
  int64_t offset = start[0] / block_elements(type) * leaf->nb[0];
  for (int i = 1; i < 4; ++i) {
    offset += start[i] * leaf->nb[i];
  }
  return graph.view(leaf, ne, leaf->nb, offset);
}

Result<Tensor*> permuted_leaf(Graph& graph, std::string name, DType type, const Shape& ne, std::string_view digits,
                              Usage usage) {
  std::array<int, 4> axes{};
  Shape leaf_ne{};
  for (int i = 0; i < 4; ++i) {
    axes[i] = digits[i] - '0';
    leaf_ne[i] = ne[axes[i]];
  }
  CUDABK_ASSIGN(Tensor * leaf, graph.leaf(std::move(name), type, leaf_ne, usage));
  return graph.permute(leaf, axes);
}

}  // namespace

std::string get_or(const CaseParams& params, std::string_view name, std::string_view fallback) {
  std::string text = params.get(name);
  return text.empty() ? std::string(fallback) : text;
}

Result<int64_t> get_int_or(const CaseParams& params, std::string_view name, int64_t fallback) {
  return params.get(name).empty() ? Result<int64_t>(fallback) : params.get_int(name);
}

Result<Shape> shape_of(const CaseParams& params, std::string_view suffix) {
  Shape ne{};
  constexpr std::string_view kNames[] = {"cols", "rows", "dim2", "dim3"};
  for (int i = 0; i < 4; ++i) {
    CUDABK_ASSIGN(ne[i], get_int_or(params, std::string(kNames[i]) + std::string(suffix), 1));
  }
  return ne;
}

const std::vector<std::string>& layout_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> w{"dense", "half", "offset", "window", "slice"};
    std::string digits = "0123";
    while (std::next_permutation(digits.begin(), digits.end())) {
      w.push_back(std::string(kPermuted) + digits);
    }
    return w;
  }();
  return words;
}

Result<Tensor*> make_operand(Graph& graph, std::string name, DType type, Shape ne, std::string_view layout,
                             Usage usage) {
  const auto& words = layout_words();
  if (std::find(words.begin(), words.end(), layout) == words.end()) {
    return invalid(fmt::format("{}: unknown layout '{}'; valid: {}", name, layout, fmt::join(words, ", ")));
  }
  if (layout.substr(0, kPermuted.size()) == kPermuted) {
    return permuted_leaf(graph, std::move(name), type, ne, layout.substr(kPermuted.size()), usage);
  }
  const int64_t block = block_elements(type);
  Shape parent = ne;
  if (layout == "half") {
    for (int64_t& n : parent) {
      n *= 2;
    }
    return view_of_leaf(graph, std::move(name), type, parent, usage, ne, {0, 0, 0, 0});
  }
  if (layout == "offset") {
    parent[0] = ne[0] + (ne[0] / block % 2 == 0 ? 3 : 2) * block;
    return view_of_leaf(graph, std::move(name), type, parent, usage, ne, {block, 0, 0, 0});
  }
  if (layout == "window") {
    const int64_t start = (kWindowColumns + block - 1) / block * block;
    parent[0] = std::max(4 * ne[0], ne[0] + start);
    parent[1] += 1;
    return view_of_leaf(graph, std::move(name), type, parent, usage, ne, {start, 0, 0, 0});
  }
  if (layout == "slice") {
    parent[1] += 1;
    return view_of_leaf(graph, std::move(name), type, parent, usage, ne, {0, 1, 0, 0});
  }
  return graph.leaf(std::move(name), type, ne, usage);
}

CaseParams make_case(std::string_view text) {
  CaseParams params;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    const size_t equal = word.find('=');
    params.values.emplace_back(word.substr(0, equal), word.substr(equal + 1));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return params;
}

double compulsory_bytes(const Tensor& t) {
  return static_cast<double>(element_count(t)) / block_elements(t.type) * block_bytes(t.type);
}

double rounding_nmse(DType type) {
  switch (type) {
    case DType::f16:
      return 0x1p-22;  // 11 significant bits
    case DType::bf16:
      return 0x1p-16;  // 8 significant bits
    default:
      return 0;
  }
}

Cost element_wise_cost(const Tensor& t, double operations_per_element) {
  Cost cost;
  cost.bytes = compulsory_bytes(t);
  cost.operations = operations_per_element * static_cast<double>(element_count(t));
  for (size_t i = 0; i < t.src.size(); ++i) {
    const Tensor* s = t.src[i];
    if (std::find(t.src.begin(), t.src.begin() + static_cast<ptrdiff_t>(i), s) !=
        t.src.begin() + static_cast<ptrdiff_t>(i)) {
      continue;
    }
    const double bytes = compulsory_bytes(*s);
    cost.bytes += bytes;
    cost.weight_bytes += s->usage == Usage::kWeights ? bytes : 0;
  }
  return cost;
}

}  // namespace cudabk
